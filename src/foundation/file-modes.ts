/** Mode of private files. Windows ignores modes. */

export const PRIVATE_FILE_MODE = 0o600;
export const PRIVATE_DIRECTORY_MODE = 0o700;
/** All permissions of other users. */
export const OTHERS_MODE = 0o077;
