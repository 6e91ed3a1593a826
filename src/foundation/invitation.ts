/**
 * Invitations to a network, one line: `svc://<node aid>/join/<data>`. The data is base64url of two parts: the first
 * bytes of a hash, which detects a truncated line, and deterministic CBOR of the network name and of the contacts with
 * the keys that they must prove.
 */
import { createHash } from 'node:crypto';
import { formatAddress, type NodeContact, parseAddress, parseContact } from './address.ts';
import { equalBytes } from './bytes.ts';
import { isCalledName } from './called-name.ts';
import { asMap, decodeCbor, encodeCbor, isBytes } from './cbor.ts';
import { NETWORK_NAME } from './domain/directory.ts';
import { MAX_INVITATION_CHARS, MAX_INVITATION_CONTACTS } from './domain/joining.ts';
import { isEntryToken } from './domain/public-names.ts';
import { SvcError } from './errors.ts';
import { type Aid, nativePublicKey, parseAid } from './identity/aid.ts';
import { PUBLIC_KEY_BYTES } from './identity/ed25519.ts';
import { cleanPastedId } from './pasted.ts';

/** Maximum length of an address in an invitation, in characters: a DNS name and a port. */
const MAX_ADDRESS_CHARS = 260;
/** Length of the hash prefix, in bytes. */
const CHECK_BYTES = 4;

const LINE = /^svc:\/\/([0-9A-Za-z]{1,100})\/join\/([A-Za-z0-9_-]+)$/;

/** A contact that must prove its key. */
export type PinnedContact = NodeContact & Required<Pick<NodeContact, 'nodeKey'>>;

export interface Invitation {
  /** The inviting node. */
  readonly from: Aid;
  /** The network name; empty for the default network. */
  readonly network: string;
  readonly contacts: readonly PinnedContact[];
  /** Permits one agent to hold public names at the inviting node. */
  readonly token?: string | undefined;
  /** The name that the inviting node gives itself. */
  readonly name?: string;
  /** An agent that the inviting user offers as a contact. */
  readonly agent?: OfferedAgent;
}

/** An agent with the name that it gives itself; the name is empty if it has none. */
export interface OfferedAgent {
  readonly aid: Aid;
  readonly name: string;
}

function checkOf(from: Aid, data: Uint8Array): Uint8Array {
  return createHash('sha256')
    .update('svcd invitation\0')
    .update(from)
    .update('\0')
    .update(data)
    .digest()
    .subarray(0, CHECK_BYTES);
}

export function formatInvitation({ from, network, contacts, token, name, agent }: Invitation): string {
  const data = encodeCbor({
    c: contacts.map((contact) => [contact.nodeKey, formatAddress(contact)]),
    n: network,
    ...(token === undefined ? {} : { t: token }),
    ...(name === undefined ? {} : { m: name }),
    ...(agent === undefined ? {} : { a: [agent.aid, agent.name] }),
  });
  return `svc://${from}/join/${Buffer.concat([checkOf(from, data), data]).toString('base64url')}`;
}

/** True if a text is meant to be an invitation, complete or not. */
function looksLikeInvitation(text: string): boolean {
  return /^svc:/i.test(cleanPastedId(text));
}

function damaged(cause?: unknown): SvcError {
  return new SvcError('invalid_request', {
    message: 'The invitation is damaged. Copy the whole line that "svc invite" prints: svc://<aid>/join/<data>.',
    details: { path: '/to' },
    cause,
  });
}

function contactOf(value: unknown): PinnedContact | null {
  if (!Array.isArray(value) || value.length !== 2) return null;
  const [nodeKey, place]: unknown[] = value;
  if (!isBytes(nodeKey, PUBLIC_KEY_BYTES) || typeof place !== 'string' || place.length > MAX_ADDRESS_CHARS) return null;
  const address = parseAddress(place);
  if (address === null || address.host === '' || address.port === 0) return null;
  // Rejects addresses that are not in canonical form.
  return formatAddress(address) === place ? { ...address, nodeKey } : null;
}

/** @throws SvcError `invalid_request`, `bad_aid` */
function agentOf(value: unknown): OfferedAgent {
  const [text, name]: unknown[] = Array.isArray(value) && value.length === 2 ? value : [];
  const aid = typeof text === 'string' ? parseAid(text) : null;
  if (aid === null || aid !== text || !(name === '' || isCalledName(name))) throw damaged();
  return { aid, name };
}

/** @throws SvcError `invalid_request` if the invitation is invalid or truncated */
export function parseInvitation(text: string): Invitation {
  const [, aid = '', encoded = ''] = text.length <= MAX_INVITATION_CHARS ? (LINE.exec(cleanPastedId(text)) ?? []) : [];
  const bytes = new Uint8Array(Buffer.from(encoded, 'base64url'));
  const [check, data] = [bytes.subarray(0, CHECK_BYTES), bytes.subarray(CHECK_BYTES)];
  try {
    const from = parseAid(aid);
    const map = equalBytes(check, checkOf(from, data))
      ? asMap(decodeCbor(data, MAX_INVITATION_CHARS), ['c', 'n'], ['t', 'm', 'a'])
      : null;
    const { c, n: network, t: token, m: name, a } = map ?? {};
    if (nativePublicKey(from) === null || !Array.isArray(c) || c.length === 0 || c.length > MAX_INVITATION_CONTACTS)
      throw damaged();
    if (name !== undefined && !isCalledName(name)) throw damaged();
    if (typeof network !== 'string' || !(network === '' || NETWORK_NAME.test(network))) throw damaged();
    if (token !== undefined && !isEntryToken(token)) throw damaged();
    const contacts = c.map(contactOf).filter((contact) => contact !== null);
    if (contacts.length < c.length) throw damaged();
    return {
      ...{ from, network, contacts },
      ...(token === undefined ? {} : { token }),
      ...(name === undefined ? {} : { name }),
      ...(a === undefined ? {} : { agent: agentOf(a) }),
    };
  } catch (error) {
    throw error instanceof SvcError && error.code === 'invalid_request' ? error : damaged(error);
  }
}

/** Where to join: an invitation, or the address of one node, which names no network. */
export interface JoinTarget {
  readonly contacts: readonly NodeContact[];
  readonly invitation: Invitation | null;
}

/** @throws SvcError `invalid_request` for other text */
export function parseJoinTarget(text: string): JoinTarget {
  const trimmed = cleanPastedId(text);
  if (looksLikeInvitation(trimmed)) {
    const invitation = parseInvitation(trimmed);
    return { contacts: invitation.contacts, invitation };
  }
  const contact = parseContact(trimmed);
  if (contact !== null) return { contacts: [contact], invitation: null };
  throw new SvcError('invalid_request', {
    message:
      'Use the whole line that "svc invite" prints on the other machine, or host, host:port or <node aid>@host:port.',
    details: { path: '/to' },
  });
}

/** The contacts without this node. */
export function otherContacts(contacts: readonly NodeContact[], ownKey: Uint8Array): NodeContact[] {
  return contacts.filter(({ nodeKey }) => nodeKey === undefined || !equalBytes(nodeKey, ownKey));
}
