/** Agents that were registered not to be published until somebody asks for it, whatever `auto_publish` says. */
export const heldAgentsMigration = `
    ALTER TABLE agents ADD COLUMN is_held INTEGER NOT NULL DEFAULT 0 CHECK (is_held IN (0, 1));
`;
