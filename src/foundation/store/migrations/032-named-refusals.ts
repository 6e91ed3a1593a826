/** Refusals of callers that the owner named: those of strangers do not push them out of the audit trail. */
export const namedRefusalsMigration = `
    ALTER TABLE admin_audit ADD COLUMN named INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX admin_audit_of_strangers ON admin_audit (id) WHERE kind = 'refused' AND named = 0;
`;
