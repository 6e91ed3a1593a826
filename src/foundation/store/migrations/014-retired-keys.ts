/**
 * The names of agents' keys that are to be deleted: a key is noted before its file is written, and no
 * longer once an agent has it; the key of an agent that goes or gets another is noted with that change.
 * A key that this database has never named belongs to another one and is left alone.
 */
export const retiredKeysMigration = `
    CREATE TABLE retired_keys (name TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
    CREATE TRIGGER agents_key_taken AFTER INSERT ON agents BEGIN
      DELETE FROM retired_keys WHERE name = new.key_name;
    END;
    CREATE TRIGGER agents_key_replaced AFTER UPDATE OF key_name ON agents WHEN old.key_name <> new.key_name BEGIN
      INSERT OR IGNORE INTO retired_keys (name) VALUES (old.key_name);
      DELETE FROM retired_keys WHERE name = new.key_name;
    END;
    CREATE TRIGGER agents_key_left AFTER DELETE ON agents BEGIN
      INSERT OR IGNORE INTO retired_keys (name) VALUES (old.key_name);
    END;
`;
