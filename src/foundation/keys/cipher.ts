/** AES-256-GCM (NIST SP 800-38D), as all that we seal at rest uses it. */

export const CIPHER = 'aes-256-gcm';
export const CIPHER_KEY_BYTES = 32;
export const NONCE_BYTES = 12;
export const TAG_BYTES = 16;
