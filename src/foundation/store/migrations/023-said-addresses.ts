/**
 * What the endpoint record that is out says of where its node is, in short; null where that is not known. Before, one
 * value stood for all of them.
 */
export const saidAddressesMigration = `
    ALTER TABLE publications ADD COLUMN said TEXT;
    DELETE FROM meta WHERE key = 'directory.said_addresses';
`;
