/**
 * Whether the owner knew the sender of a note whose id is remembered, and of an invitation to a room: those of strangers
 * are forgotten first.
 */
export const notesKnownMigration = `
    ALTER TABLE notes_seen ADD COLUMN known INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE room_invites_in ADD COLUMN known INTEGER NOT NULL DEFAULT 0;
`;
