/** Permissions of what only its owner may see. Windows knows no others, and ignores them. */

export const PRIVATE_FILE_MODE = 0o600;
export const PRIVATE_DIRECTORY_MODE = 0o700;
/** Whatever others than the owner may do. */
export const OTHERS_MODE = 0o077;
