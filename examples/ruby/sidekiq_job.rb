# frozen_string_literal: true

# The same worker as jobs of Sidekiq:  bundle exec sidekiq -r ./sidekiq_job.rb -q billing
#
# Every job here may run twice, at once, late, or again after it was killed: what may be sent is
# the database's to say, never the queue's. A queue that lost a job loses no payment either: the
# sweep takes what is left, and tieout finds what is stuck.

require "sidekiq"
require_relative "charge_worker"

# The application enqueues it with the row's id, after the row is committed:
#   id = Charges.intend(db, "sub_42", "2026-11", 1999, "EUR", "pm_…"); ChargeJob.perform_async(id)
# Sidekiq's own retry finds a row that is no longer `new` and sends nothing: whether a lost call
# arrived is not the queue's to guess.
class ChargeJob
  include Sidekiq::Worker
  sidekiq_options queue: "billing", retry: 5

  def perform(id)
    Charges.open do |db|
      attempt = Charges.take_new(db, id)
      Charges.charge(db, attempt) if attempt
    end
  end
end

# What tieout's sink pushes: kind = "sidekiq", queue = "billing", class = "TieoutEventJob". The
# one argument is the event.
class TieoutEventJob
  include Sidekiq::Worker
  sidekiq_options queue: "billing", retry: 5

  def perform(event)
    Charges.open { |db| Charges.on_event(db, event) }
  rescue Charges::TooEarly
    # A hand-back that is not due yet, or whose row somebody holds.
    self.class.perform_in(60, event)
  end
end

# Each few minutes, by the application's own schedule: payments whose job got lost on its way.
class ChargeSweepJob
  include Sidekiq::Worker
  sidekiq_options queue: "billing", retry: false

  def perform
    Charges.open do |db|
      100.times { break unless Charges.work_once(db, "both") }
    end
  end
end
