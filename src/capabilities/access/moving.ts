/** Export and import of an agent's access list. Secrets are exported only as their hashes. */
import { toHex } from '../../foundation/bytes.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { newId } from '../../foundation/ids.ts';
import type { AccessPart } from '../../foundation/moving/agent-document.ts';
import { aidAt, badDocument, checkDistinct, hexBytes } from '../../foundation/moving/document-fields.ts';
import type { AccessRepository, AidEntry, SecretEntry } from '../../foundation/store/access.ts';
import { MAX_SECRETS } from './access-lists.ts';

/** The access list of an agent. Undefined if it was never changed. */
export function exportAccess(repository: AccessRepository, aid: Aid): AccessPart | undefined {
  const stored = repository.load(aid);
  if (stored === null) return undefined;
  return {
    default: stored.policy,
    salt_hex: toHex(stored.salt),
    allow: stored.allow.map((entry) => ({
      ...('aid' in entry ? { aid: entry.aid } : { secret_hash_hex: toHex(entry.secretHash) }),
      ...(entry.label === null ? {} : { label: entry.label }),
      created_at: entry.createdAt,
      ...(entry.expiresAt === null ? {} : { expires_at: entry.expiresAt }),
      ...('aid' in entry && entry.tools !== null ? { tools: [...entry.tools] } : {}),
    })),
    deny: stored.deny.map(({ aid: denied, createdAt, expiresAt }) => ({
      aid: denied,
      created_at: createdAt,
      ...(expiresAt === null ? {} : { expires_at: expiresAt }),
    })),
  };
}

/**
 * Validates an imported access list. Its entries get new ids.
 * @returns a function that stores the list
 * @throws SvcError `bad_file`
 */
export function importAccess(repository: AccessRepository, subject: Aid, part: AccessPart | undefined): () => void {
  if (part === undefined) return () => {};
  const allow = part.allow.map((entry, i) => readAllow(`/access/allow/${i}`, entry));
  const deny = part.deny.map((entry, i) => readDeny(`/access/deny/${i}`, entry));
  checkDistinct('/access/allow', allow.map(nameOf));
  checkDistinct('/access/deny', deny.map(nameOf));
  if (allow.filter((entry) => 'secretHash' in entry).length > MAX_SECRETS)
    throw badDocument('/access/allow', `has more than ${MAX_SECRETS} secrets`);
  return () => {
    repository.create(subject, part.default, hexBytes(part.salt_hex));
    for (const entry of allow) repository.put(subject, 'allow', entry);
    for (const entry of deny) repository.put(subject, 'deny', entry);
  };
}

function nameOf(entry: AidEntry | SecretEntry): string {
  return 'aid' in entry ? entry.aid : toHex(entry.secretHash);
}

function readDeny(path: string, { aid, created_at, expires_at }: AccessPart['deny'][number]): AidEntry {
  const common = { id: newId(), label: null, createdAt: created_at, expiresAt: expires_at ?? null, tools: null };
  return { ...common, aid: aidAt(`${path}/aid`, aid) };
}

function readAllow(path: string, entry: AccessPart['allow'][number]): AidEntry | SecretEntry {
  const { aid, secret_hash_hex: hash, created_at: createdAt, tools = null } = entry;
  const common = { id: newId(), label: entry.label ?? null, createdAt, expiresAt: entry.expires_at ?? null };
  if (aid !== undefined && hash === undefined) return { ...common, aid: aidAt(`${path}/aid`, aid), tools };
  if (hash !== undefined && aid === undefined && tools === null) return { ...common, secretHash: hexBytes(hash) };
  throw badDocument(path, 'must have either aid or secret_hash_hex');
}
