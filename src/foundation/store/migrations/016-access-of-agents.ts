/** An agent's access list goes with it, in one step: a later registration of it begins with none. */
export const accessOfAgentsMigration = `
    CREATE TRIGGER agents_access AFTER DELETE ON agents BEGIN
      DELETE FROM access_subjects WHERE subject = OLD.aid;
    END;
    -- Left by a crash between the two steps that there were.
    DELETE FROM access_subjects WHERE subject <> 'node' AND subject NOT IN (SELECT aid FROM agents);
`;
