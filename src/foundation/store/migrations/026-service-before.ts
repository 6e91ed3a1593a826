/** What an agent was bound to before temporary services took its place, a line each, the last one first; NULL: none did. */
export const serviceBeforeMigration = `
    ALTER TABLE agents ADD COLUMN service_before TEXT;
`;
