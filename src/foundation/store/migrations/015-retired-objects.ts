/**
 * The ids of objects whose stored bytes are to be deleted, as `retired-keys` for keys: bytes that this
 * database has never named belong to another one and are left alone.
 */
export const retiredObjectsMigration = `
    CREATE TABLE retired_objects (object_id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
    CREATE TRIGGER objects_stored AFTER INSERT ON objects WHEN new.path IS NULL BEGIN
      DELETE FROM retired_objects WHERE object_id = new.object_id;
    END;
    CREATE TRIGGER objects_changed AFTER UPDATE OF path ON objects WHEN old.path IS NOT new.path BEGIN
      DELETE FROM retired_objects WHERE object_id = new.object_id AND new.path IS NULL;
      INSERT OR IGNORE INTO retired_objects (object_id) SELECT old.object_id
        WHERE old.path IS NULL AND NOT EXISTS (SELECT 1 FROM objects WHERE object_id = old.object_id AND path IS NULL);
    END;
    CREATE TRIGGER objects_left AFTER DELETE ON objects WHEN old.path IS NULL BEGIN
      INSERT OR IGNORE INTO retired_objects (object_id) SELECT old.object_id
        WHERE NOT EXISTS (SELECT 1 FROM objects WHERE object_id = old.object_id AND path IS NULL);
    END;
`;
