-- A bank's text may name the tag only at a second place: the texts that patterns found beside a
-- line's first tag stand with the line, too, so that its row is looked for by each of them.
-- The twin of migrations/postgres: the same columns, held equal by the conformance suite.

-- JSON: texts, the likeliest first; null: none.
alter table tieout_lines add column further text;
update tieout_lines as l set further = t.texts
    from (select file_id, position, json_group_array(text) as texts
        from tieout_line_tags group by file_id, position) t
    where l.file_id = t.file_id and l.position = t.position;
