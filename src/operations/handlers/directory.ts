/** Handlers of the directory operations. */
import type { AgentRegistry } from '../../capabilities/agents/registry.ts';
import { readProfile } from '../../capabilities/directory/cards.ts';
import type { Catalog } from '../../capabilities/directory/catalog.ts';
import { didDocument } from '../../capabilities/directory/did-document.ts';
import type { Directory } from '../../capabilities/directory/directory.ts';
import type { DiscoveryEntry, RecentServices, Search } from '../../capabilities/directory/discovery.ts';
import type { PublishResult } from '../../capabilities/directory/publishing.ts';
import type { AgentResolver } from '../../capabilities/directory/types.ts';
import { toBase64 } from '../../foundation/base64.ts';
import { isoTime } from '../../foundation/clock.ts';
import { RECORD_TTL_S, SEARCH_PAGE_DEFAULT } from '../../foundation/domain/directory.ts';
import { SvcError } from '../../foundation/errors.ts';
import { type Aid, didOf } from '../../foundation/identity/aid.ts';
import { encodeDelegation } from '../../foundation/identity/delegation.ts';
import { expiresAt, type SignedRecord } from '../../foundation/records/record.ts';
import { RECORD } from '../../foundation/records/types.ts';
import {
  type catalogOperations,
  DISCOVER_LIMIT_DEFAULT,
  type directoryOperations,
  RECENT_LIMIT_DEFAULT,
} from '../directory.ts';
import type { Handlers, ResultOf } from '../operation.ts';
import { profileView } from './agents.ts';
import { bytesOf, timeOrNull } from './values.ts';

// Handlers of the AI Catalog and the search.

interface CatalogHandlerDependencies {
  readonly catalog: Catalog;
}

export function catalogHandlers({ catalog }: CatalogHandlerDependencies): Handlers<typeof catalogOperations> {
  const search: Handlers<typeof catalogOperations>['catalogSearch'] = async (input, { signal }) => {
    const { query, federation, pageSize = SEARCH_PAGE_DEFAULT, pageToken } = input;
    const { text, filter = {} } = query;
    const offset = Number(pageToken ?? 0);
    const { results, next } = await catalog.search({ text, filter, pageSize, offset, signal });
    return {
      results,
      ...(federation === 'referrals' ? { referrals: [] } : {}),
      ...(next === null ? {} : { pageToken: `${next}` }),
    };
  };
  return { catalogGet: () => catalog.manifest(), catalogSearch: search, catalogSearchBelow: search };
}

export interface DirectoryHandlerDependencies {
  readonly agents: AgentRegistry;
  readonly directory: Directory;
  readonly resolver: AgentResolver;
  /** The signed card of a local agent. Its profile names it by default. */
  readonly cardOf: (aid: Aid) => string | undefined;
  readonly discover: (search: Search) => Promise<readonly DiscoveryEntry[]>;
  readonly recent: RecentServices;
}

type RecordView = ResultOf<typeof directoryOperations.resolveRecords>['records'][number];

/** @throws SvcError `invalid_request` for the agent of a wallet */
function orNoDid<T>(value: T | null): T {
  if (value !== null) return value;
  throw new SvcError('invalid_request', {
    message: 'Only native agents (aid1…) have a did:key. The AID of a wallet is a hash of its key.',
    details: { in: 'path', path: '/aid' },
  });
}

function published({ seq, replicas, problem }: PublishResult) {
  return { ok: true as const, seq, replicas, ...(problem === undefined ? {} : { problem }) };
}

function recordView(record: SignedRecord): RecordView {
  const profile = record.type === RECORD.profile ? readProfile(record.payload) : null;
  return {
    aid: record.aid,
    rec_type: record.type,
    payload_base64: toBase64(record.payload),
    seq: record.seq,
    timestamp: isoTime(record.timestamp * 1000),
    ttl: record.ttl,
    public_key_base64: toBase64(record.delegation.operationalKey),
    signature_base64: toBase64(record.signature),
    delegation_base64: toBase64(encodeDelegation(record.delegation)),
    record_base64: toBase64(record.encoded),
    profile: profile === null ? undefined : profileView(profile),
  };
}

function entryView({ expiresAt: end, publishedAt: _at, wakesWithinS, ...entry }: DiscoveryEntry) {
  return { ...entry, wakes_within_s: wakesWithinS, expires_at: isoTime(end * 1000) };
}

export function directoryHandlers(deps: DirectoryHandlerDependencies): Handlers<typeof directoryOperations> {
  const { agents, directory, resolver, discover, recent, cardOf } = deps;
  /** An agent registered here. The node itself is not one. */
  const local = (aid: Aid): Aid => agents.get(aid).aid;
  return {
    agentPublish: async ({ aid }) => published(await directory.publish(local(aid))),
    agentPublishRecord: async (input) => {
      const { rec_type: type, ttl = RECORD_TTL_S } = input;
      const payload = bytesOf(input.payload_base64, 'payload_base64');
      return published(await directory.publishRecord(local(input.aid), type, payload, ttl));
    },
    profileSet: async ({ aid, card_hash, wakes_within_s: wakesWithinS, ...rest }) => {
      const card = { ...rest, wakesWithinS };
      const cardHash = card_hash ?? cardOf(aid);
      return published(await directory.setProfile(local(aid), cardHash === undefined ? card : { ...card, cardHash }));
    },
    profileDelete: async ({ aid }) => published(await directory.deleteProfile(local(aid))),
    servicesList: ({ aid }) => ({
      services: directory.services(local(aid)).map(({ expiresAt: end, meta, wakesWithinS, ...card }) => ({
        ...card,
        wakes_within_s: wakesWithinS,
        meta: meta ?? {},
        expires_at: timeOrNull(end),
      })),
    }),
    serviceRegister: async ({ aid, wakes_within_s: wakesWithinS, ...offer }) => {
      const defaults = { name: '', protocols: [], tags: [], brief: '', meta: null, ttl: RECORD_TTL_S };
      return published(await directory.registerServices(local(aid), { ...defaults, ...offer, wakesWithinS }));
    },
    serviceUnregister: async ({ aid, service }) => {
      await directory.unregisterService(local(aid), service);
      return { ok: true };
    },
    discover: async ({ services, filter, limit = DISCOVER_LIMIT_DEFAULT }, { signal }) => {
      const entries = await discover({
        services,
        protocols: filter?.protocols ?? [],
        tags: filter?.tags ?? [],
        limit,
        signal,
      });
      return { entries: entries.map(entryView) };
    },
    discoverRecent: ({ limit = RECENT_LIMIT_DEFAULT }) => ({
      entries: recent
        .list(limit)
        .map(({ meta: _meta, seq: _seq, publishedAt, expiresAt: end, wakesWithinS, ...entry }) => ({
          ...entry,
          wakes_within_s: wakesWithinS,
          published_at: isoTime(publishedAt * 1000),
          expires_at: isoTime(end * 1000),
        })),
    }),
    resolve: async ({ aid }, { signal }) => {
      const { record, payload } = await resolver.resolve(aid, { signal });
      return {
        aid: record.aid,
        address: record.aid,
        endpoints: payload.endpoints,
        nat_type: payload.natType,
        seq: record.seq,
        ttl: record.ttl,
        timestamp: isoTime(record.timestamp * 1000),
        expires_at: isoTime(expiresAt(record) * 1000),
      };
    },
    resolveRecords: async ({ aid, type = 0 }, { signal }) => {
      const records = await resolver.records(aid, type === 0 ? null : type, signal);
      return { records: records.map(recordView) };
    },
    did: async ({ aid }) => ({ aid, did: orNoDid(didOf(aid)) }),
    didDocument: async ({ aid }, { signal }) => {
      orNoDid(didOf(aid));
      return orNoDid(didDocument(aid, await resolver.records(aid, null, signal)));
    },
  };
}
