/**
 * The text that a wallet signs to delegate. Each grant has exactly one text, and parsing it returns the grant. Format:
 * docs/protocol.md, "Wallet text".
 */
import { fromHex, toHex } from '../bytes.ts';
import { SvcError } from '../errors.ts';
import { parseAid } from './aid.ts';
import { checkGrant, type Grant } from './grant.ts';

const TITLE = 'svcd delegation v1\nAllow the key below to act for my agent.\n\n';
const FIELDS =
  /^op_key: ([0-9a-f]{64})\nagent: ([0-9A-Za-z]{1,90})\nscope: ([0-9]{1,2})\nissued_at: ([0-9]{1,12})\nexpires_at: ([0-9]{1,12})$/;

/**
 * Formats a grant, without a line break at the end.
 * @throws SvcError `bad_delegation` if the grant is invalid
 */
export function walletText(grant: Grant): string {
  checkGrant(grant);
  return `${TITLE}op_key: ${toHex(grant.operationalKey)}\nagent: ${grant.agent}\nscope: ${grant.scope}\nissued_at: ${grant.issuedAt}\nexpires_at: ${grant.expiresAt}`;
}

/** Parses a text; null unless it is exactly the text that `walletText` returns for the grant. */
export function parseWalletText(text: string): Grant | null {
  const fields = text.startsWith(TITLE) ? FIELDS.exec(text.slice(TITLE.length)) : null;
  if (fields === null) return null;
  const [, key = '', agent = '', scope, issuedAt, expiresAt] = fields;
  try {
    const grant: Grant = {
      agent: parseAid(agent),
      operationalKey: fromHex(key) ?? new Uint8Array(),
      scope: Number(scope),
      issuedAt: Number(issuedAt),
      expiresAt: Number(expiresAt),
    };
    return walletText(grant) === text ? grant : null;
  } catch (error) {
    if (error instanceof SvcError) return null;
    throw error;
  }
}
