/** Operations on the records of agents: publish, look up, search. */
import { Type } from 'typebox';
import {
  MAX_FILTER_FIELDS,
  MAX_FILTER_VALUES,
  MAX_NAMES_PER_CALL,
  MAX_PROVIDERS,
  MAX_SCORE,
  MAX_SEARCH_PAGE,
  MAX_SEARCH_TEXT_CHARS,
  MIN_RECORD_TTL_S,
  RECORD_TTL_S,
  SEARCH_PAGE_DEFAULT,
  SERVICE_NAME_FORMAT,
} from '../foundation/domain/directory.ts';
import {
  MAX_BRIEF_BYTES,
  MAX_LABELS,
  MAX_NAME_BYTES,
  MAX_RECORD_TYPE,
  MAX_TTL_S,
  RECORD,
} from '../foundation/records/types.ts';
import { Profile } from './agents.ts';
import { declare } from './declare.ts';
import {
  AidParams,
  AidText,
  AnyObject,
  Base64,
  closed,
  freeForm,
  NatType,
  NONE,
  nullable,
  oneOf,
  Timestamp,
  WakesWithin,
} from './schemas.ts';

// Operations for programs that find agents through web standards: AI Catalog 1.0, Agentic Resource Discovery 0.9.

/** Federation modes of a search. Here the whole record network is one registry. */
const FEDERATIONS = ['auto', 'referrals', 'none'] as const;
/** Longest value of a filter, characters. */
const MAX_FILTER_CHARS = 200;
/** A page token is the number of its first entry. */
const PAGE_TOKEN = '^[1-9]\\d{0,5}$';

const TrustManifest = Type.Object({
  identity: Type.String({ description: 'The DID of the agent, or `svc://` and the AID of a wallet.' }),
  identityType: oneOf(['did', 'other']),
});

const Entry = Type.Object({
  identifier: Type.String({ description: '`urn:air:`, the DID or AID, and the kind of card.' }),
  displayName: Type.String(),
  type: Type.String({ description: 'Media type of the card.' }),
  url: Type.Optional(Type.String({ description: 'Address of the card on this node.' })),
  data: Type.Optional(AnyObject),
  description: Type.Optional(Type.String()),
  tags: Type.Optional(Type.Array(Type.String())),
  capabilities: Type.Optional(Type.Array(Type.String(), { description: 'Service names.' })),
  metadata: Type.Record(Type.String(), Type.String()),
  trustManifest: TrustManifest,
});

const FilterText = Type.String({ maxLength: MAX_FILTER_CHARS });

const SearchQuery = closed({
  query: closed({
    text: Type.String({ minLength: 1, maxLength: MAX_SEARCH_TEXT_CHARS }),
    filter: Type.Optional(
      Type.Record(Type.String(), Type.Union([FilterText, Type.Array(FilterText, { maxItems: MAX_FILTER_VALUES })]), {
        maxProperties: MAX_FILTER_FIELDS,
        description: 'Field path of an entry to accepted values. `publisher` is the DID or AID.',
      }),
    ),
  }),
  federation: Type.Optional(oneOf(FEDERATIONS, { description: 'The record network is always searched.' })),
  pageSize: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_SEARCH_PAGE, default: SEARCH_PAGE_DEFAULT })),
  pageToken: Type.Optional(Type.String({ pattern: PAGE_TOKEN, description: '`pageToken` of the previous page.' })),
});

const SearchResults = Type.Object({
  results: Type.Array(
    Type.Object({
      ...Entry.properties,
      score: Type.Integer({
        minimum: 0,
        maximum: MAX_SCORE,
        description: 'Match quality, not trust.',
      }),
      source: Type.String(),
    }),
  ),
  referrals: Type.Optional(Type.Array(AnyObject, { description: 'Always empty: there are no other registries.' })),
  pageToken: Type.Optional(Type.String()),
});

/** Errors of a search that other nodes do not answer. */
const SEARCH_ERRORS = ['network_unavailable', 'clock_wrong'] as const;

export const catalogOperations = declare(
  { tag: 'Directory', permission: 'read' },
  {
    catalogGet: {
      summary: 'Returns the AI Catalog of this node: its published agents and its search address.',
      route: 'GET /.well-known/ai-catalog.json',
      output: Type.Object({
        specVersion: Type.Literal('1.0'),
        host: Type.Object({
          displayName: Type.String(),
          identifier: Type.String(),
          trustManifest: TrustManifest,
        }),
        entries: Type.Array(Entry),
      }),
      produces: 'application/ai-catalog+json',
    },

    catalogSearch: {
      summary:
        'Finds agents by text (Agentic Resource Discovery 0.9). Service names in the text, its words and pairs of words are searched.',
      route: 'POST /search',
      body: SearchQuery,
      output: SearchResults,
      errors: SEARCH_ERRORS,
    },

    catalogSearchBelow: {
      summary: 'The same search at the address that the catalog names.',
      route: 'POST /ard/search',
      body: SearchQuery,
      output: SearchResults,
      errors: SEARCH_ERRORS,
    },
  },
);

/** Default number of results of `discover`. */
export const DISCOVER_LIMIT_DEFAULT = 100;

/** Default number of results of `discoverRecent`. */
export const RECENT_LIMIT_DEFAULT = 100;

const COMMON = { params: AidParams, heartbeat: true, tag: 'Directory' } as const;

const Labels = Type.Array(Type.String(), { maxItems: MAX_LABELS });
const ServiceName = Type.String({ format: SERVICE_NAME_FORMAT, description: 'Such as `lang.translate`.' });
const ServiceNames = Type.Array(ServiceName, { minItems: 1, maxItems: MAX_NAMES_PER_CALL });
const Seq = Type.Integer({ minimum: 0 });
const Ttl = Type.Integer({
  minimum: MIN_RECORD_TTL_S,
  maximum: MAX_TTL_S,
  default: RECORD_TTL_S,
  description: 'In seconds; the daemon renews it.',
});
const Published = Type.Object({
  ok: Type.Literal(true),
  seq: Seq,
  replicas: Type.Integer({
    minimum: 0,
    description:
      'Other nodes that verified and stored it so far. 0 if no other node is known: it is sent when one appears.',
  }),
  problem: Type.Optional(
    Type.String({ description: 'Why nodes in other networks do not reach the agent although nodes here store it.' }),
  ),
});
const DidText = Type.String({
  pattern: '^did:key:z[1-9A-HJ-NP-Za-km-z]{47}$',
  description: 'Such as `did:key:z6Mk…`.',
});
const KeyIds = Type.Array(Type.String());
/** Errors of a lookup. */
export const RESOLVE_ERRORS = ['bad_aid', 'resolve_failed', 'network_unavailable', 'clock_wrong', 'cancelled'] as const;
/** Errors of a publication. */
export const PUBLISH_ERRORS = [
  'bad_aid',
  'not_found',
  'not_acknowledged',
  'network_unavailable',
  'clock_wrong',
  'stale_sequence',
  'bad_delegation',
  'key_locked',
] as const;

/** A service of an agent, in results. */
const FOUND_SERVICE = {
  service: Type.String(),
  aid: AidText,
  name: Type.String(),
  brief: Type.String(),
  protocols: Type.Array(Type.String()),
  tags: Type.Array(Type.String()),
  wakes_within_s: Type.Optional(WakesWithin),
};

export const directoryOperations = declare(COMMON, {
  agentPublish: {
    summary: 'Publishes the endpoint record now, with a higher sequence number than the network has.',
    route: 'POST /agents/{aid}/publish',
    output: Published,
    errors: PUBLISH_ERRORS,
    tool: { name: 'svc_agent_publish', description: 'Publish the address of an agent now.', idempotent: true },
  },

  agentPublishRecord: {
    summary: 'Publishes a signed record of a custom type and renews it.',
    route: 'POST /agents/{aid}/records',
    body: closed({
      rec_type: Type.Integer({
        minimum: RECORD.customFirst,
        maximum: RECORD.customLast,
        description: `${RECORD.customFirst} to ${RECORD.customLast}; ${RECORD.profile} is the profile.`,
      }),
      payload_base64: Base64,
      ttl: Type.Optional(Ttl),
    }),
    output: Published,
    errors: [...PUBLISH_ERRORS, 'too_large'],
    tool: { name: 'svc_agent_publish_record', description: 'Publish a custom record of an agent.', idempotent: true },
  },

  profileSet: {
    summary: 'Replaces the profile of an agent and publishes it.',
    route: 'POST /agents/{aid}/profile',
    body: Profile,
    output: Published,
    errors: [...PUBLISH_ERRORS, 'too_large'],
  },

  profileDelete: {
    summary: 'Removes the profile and publishes an empty one instead.',
    route: 'DELETE /agents/{aid}/profile',
    output: Published,
    errors: ['bad_aid', 'not_found'],
  },

  servicesList: {
    summary: 'Lists the services that a local agent offers, by name.',
    route: 'GET /agents/{aid}/services',
    output: Type.Object({
      services: Type.Array(
        Type.Object({
          service: ServiceName,
          name: Type.String(),
          brief: Type.String(),
          protocols: Type.Array(Type.String()),
          tags: Type.Array(Type.String()),
          wakes_within_s: Type.Optional(WakesWithin),
          meta: AnyObject,
          ttl: Type.Integer({ minimum: 1, description: 'Seconds.' }),
          replicas: Type.Integer({ minimum: 0, description: 'Nodes that store it.' }),
          expires_at: nullable(Timestamp),
        }),
      ),
    }),
    errors: ['bad_aid', 'not_found'],
  },

  serviceRegister: {
    summary: 'Offers an agent under service names, which other nodes can search.',
    route: 'POST /agents/{aid}/services',
    body: closed({
      services: ServiceNames,
      name: Type.Optional(Type.String({ description: `Display name, at most ${MAX_NAME_BYTES} bytes.` })),
      protocols: Type.Optional(Labels),
      tags: Type.Optional(Labels),
      brief: Type.Optional(Type.String({ description: `At most ${MAX_BRIEF_BYTES} bytes.` })),
      meta: Type.Optional(freeForm('Free-form, such as a url.')),
      wakes_within_s: Type.Optional(WakesWithin),
      ttl: Type.Optional(Ttl),
    }),
    output: Published,
    errors: [...PUBLISH_ERRORS, 'bad_service_name', 'too_large', 'quota_exceeded'],
    tool: {
      name: 'svc_service_register',
      description: 'Offer services under names others search.',
      idempotent: true,
      omit: ['wakes_within_s'],
    },
  },

  serviceUnregister: {
    summary: 'Withdraws a service. Stored copies expire with their TTL.',
    route: 'DELETE /agents/{aid}/services/{service}',
    params: closed({ ...AidParams.properties, service: ServiceName }),
    output: Type.Object({ ok: Type.Literal(true) }),
    errors: ['bad_aid', 'not_found', 'bad_service_name'],
    tool: { name: 'svc_service_unregister', description: 'Stop offering a service.', destructive: true },
  },

  discover: {
    summary: 'Finds agents by service name. Several names return the union, newest first.',
    route: 'POST /discover',
    params: NONE,
    body: closed({
      services: ServiceNames,
      filter: Type.Optional(
        closed({
          protocols: Type.Optional(
            Type.Array(Type.String(), { maxItems: MAX_LABELS, description: 'At least one of them.' }),
          ),
          tags: Type.Optional(Type.Array(Type.String(), { maxItems: MAX_LABELS, description: 'All of them.' })),
        }),
      ),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_PROVIDERS, default: DISCOVER_LIMIT_DEFAULT })),
    }),
    output: Type.Object({
      entries: Type.Array(
        Type.Object({
          ...FOUND_SERVICE,
          meta: AnyObject,
          seq: Seq,
          expires_at: Timestamp,
        }),
      ),
    }),
    permission: 'read',
    errors: ['bad_service_name', ...SEARCH_ERRORS],
    tool: { name: 'svc_discover', description: 'Find agents by service name.', foreignText: true, omit: ['limit'] },
  },

  discoverRecent: {
    summary:
      'Lists services that this node knows without a search: from records that it stores for other nodes, and from earlier searches. The last published come first.',
    route: 'GET /discover/recent',
    params: NONE,
    query: closed({
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: MAX_PROVIDERS, default: RECENT_LIMIT_DEFAULT })),
    }),
    output: Type.Object({
      entries: Type.Array(
        Type.Object({
          ...FOUND_SERVICE,
          published_at: Timestamp,
          expires_at: Timestamp,
        }),
      ),
    }),
  },

  resolve: {
    summary: 'Looks up the addresses of an agent.',
    route: 'POST /resolve/{aid}',
    output: Type.Object({
      aid: AidText,
      address: AidText,
      endpoints: Type.Array(Type.String({ description: '`quic://host:port`' })),
      nat_type: NatType,
      seq: Seq,
      ttl: Type.Integer({ minimum: 1, description: 'In seconds from `timestamp`.' }),
      timestamp: Timestamp,
      expires_at: Timestamp,
    }),
    permission: 'read',
    errors: RESOLVE_ERRORS,
    tool: { name: 'svc_resolve', description: 'Find where an agent is.', requiresAid: true, foreignText: true },
  },

  resolveRecords: {
    summary: 'Looks up the signed records that an agent publishes under its AID.',
    route: 'GET /resolve/{aid}/records',
    query: closed({
      type: Type.Optional(
        Type.Integer({ minimum: 0, maximum: MAX_RECORD_TYPE, default: 0, description: '0: all types.' }),
      ),
    }),
    output: Type.Object({
      records: Type.Array(
        Type.Object({
          aid: AidText,
          rec_type: Type.Integer(),
          payload_base64: Base64,
          seq: Seq,
          timestamp: Timestamp,
          ttl: Type.Integer({ minimum: 1 }),
          public_key_base64: Base64,
          signature_base64: Base64,
          delegation_base64: Base64,
          record_base64: Base64,
          profile: Type.Optional(Profile),
        }),
      ),
    }),
    errors: RESOLVE_ERRORS,
    tool: {
      name: 'svc_resolve_records',
      description: 'Signed records of an agent.',
      requiresAid: true,
      foreignText: true,
    },
  },

  did: {
    summary: 'Converts between a native AID and its did:key. Uses no network.',
    route: 'GET /did/{aid}',
    output: Type.Object({ aid: AidText, did: DidText }),
    errors: ['bad_aid', 'invalid_request'],
  },

  didDocument: {
    summary: 'Returns the DID document of a native agent: its keys with their proof, and its address.',
    route: 'GET /resolve/{aid}/did',
    output: Type.Object({
      '@context': Type.Array(Type.String()),
      id: DidText,
      verificationMethod: Type.Array(
        Type.Object({
          id: Type.String(),
          type: Type.Literal('Multikey'),
          controller: DidText,
          publicKeyMultibase: Type.String(),
          expires: Type.Optional(Timestamp),
          delegation: Type.Optional(Base64),
        }),
      ),
      capabilityDelegation: KeyIds,
      authentication: KeyIds,
      assertionMethod: KeyIds,
      capabilityInvocation: KeyIds,
      keyAgreement: KeyIds,
      service: Type.Array(
        Type.Object({
          id: Type.String(),
          type: Type.String(),
          serviceEndpoint: Type.Union([Type.Array(Type.String()), AnyObject]),
        }),
      ),
    }),
    errors: [...RESOLVE_ERRORS, 'invalid_request'],
  },
});
