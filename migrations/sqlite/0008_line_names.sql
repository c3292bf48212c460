-- A bank's text may name the tag only at a second place: the texts that patterns found beside a
-- line's first tag stand with the line, too, so that its row is looked for by each of them.
-- The twin of migrations/postgres: the same columns, held equal by the conformance suite.

-- JSON: texts, the likeliest first; null: none.
alter table tieout_lines add column further text;
update tieout_lines as l set further = t.texts
    from (select x.file_id, x.position, json_group_array(x.text) as texts
        from tieout_line_tags x
        join tieout_lines o on o.file_id = x.file_id and o.position = x.position
        where x.text is not o.psp_reference and x.text is not o.original
        and instr(o.refs, '"' || x.text || '"') = 0
        group by x.file_id, x.position) t
    where l.file_id = t.file_id and l.position = t.position;
