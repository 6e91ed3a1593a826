/**
 * Which agents a stranger made this node remember, and which of them had two delegations: those of one source and one
 * network are forgotten before those of others. Empty: this node chose the agent itself.
 */
export const delegationSourcesMigration = `
    ALTER TABLE seen_delegations ADD COLUMN source TEXT NOT NULL DEFAULT 'unknown';
    ALTER TABLE seen_delegations ADD COLUMN network TEXT NOT NULL DEFAULT 'unknown';
    ALTER TABLE seen_delegations ADD COLUMN rotated INTEGER NOT NULL DEFAULT 0;
    DROP INDEX seen_delegations_age;
`;
