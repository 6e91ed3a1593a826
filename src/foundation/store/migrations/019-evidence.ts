/** Agents whose calls carry evidence: a signature that the called service can show to others. */
export const evidenceMigration = `
    ALTER TABLE agents ADD COLUMN gives_evidence INTEGER NOT NULL DEFAULT 0 CHECK (gives_evidence IN (0, 1));
`;
