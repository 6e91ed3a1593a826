/** Sums over what chat entries, room entries and notes say, to notice bytes that the disk changed. Rows of before have none. */
export const rowSumsMigration = `
    ALTER TABLE chat_entries ADD COLUMN sum INTEGER;
    ALTER TABLE room_entries ADD COLUMN sum INTEGER;
    ALTER TABLE notes ADD COLUMN sum INTEGER;
`;
