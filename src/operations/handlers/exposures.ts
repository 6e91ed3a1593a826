/** Handlers of the operations on public addresses. */
import type { Certificates } from '../../capabilities/exposures/certificates.ts';
import type { Exposures } from '../../capabilities/exposures/exposures.ts';
import type { HeldName, NameHolder } from '../../capabilities/public-names/name-holder.ts';
import { isoTime } from '../../foundation/clock.ts';
import type { ExposureState } from '../../foundation/domain/exposures.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { ExposureRow } from '../../foundation/store/exposures.ts';
import type { exposureOperations } from '../exposures.ts';
import type { Handlers } from '../operation.ts';

export interface ExposureHandlerDependencies {
  readonly exposures: Exposures;
  readonly certificates: Pick<Certificates, 'state'>;
  readonly publicNames: Pick<NameHolder, 'claim' | 'release' | 'list' | 'entries'>;
  /** The bound service of an agent. @throws SvcError `not_found` if the agent is not registered here */
  readonly serviceOf: (aid: Aid) => { readonly acceptsCalls: boolean } | null;
  /** The name of an agent in its profile. */
  readonly nameOf: (aid: Aid) => string | undefined;
}

/** Characters of an AID in a default name. */
const AID_CHARS = 8;

/** A label for the name of an agent: `Demo agent` becomes `demo-agent`. */
function labelOf(name: string | undefined, aid: Aid): string {
  const words = (name ?? '').toLowerCase().match(/[a-z0-9]+/g) ?? [];
  return words.length > 0 ? words.join('-').slice(0, 40).replace(/-$/, '') : `a${aid.slice(-AID_CHARS)}`;
}

const timeOrNull = (ms: number | null): string | null => (ms === null ? null : isoTime(ms));

export function exposureHandlers(deps: ExposureHandlerDependencies): Handlers<typeof exposureOperations> {
  const { exposures, certificates, publicNames, serviceOf, nameOf } = deps;
  const held = (host: string): HeldName | undefined => publicNames.list().find(({ name }) => name === host);

  const view = ({ id, aid, host, mode, rules, isOn, openedAt }: ExposureRow) => {
    const name = held(host);
    const { notAfter, error } = certificates.state(host);
    const problem = name?.error ?? error;
    const isReady = name?.state === 'held' && notAfter !== null;
    const state: ExposureState = !isOn ? 'off' : isReady ? 'serves' : problem === null ? 'waiting' : 'failed';
    return {
      id,
      aid,
      url: `https://${host}`,
      mode,
      rules: [...rules],
      entry: name?.entry ?? null,
      state,
      problem,
      certificate_expires_at: timeOrNull(notAfter),
      tokens: exposures.tokens(id).map((token) => ({
        id: token.id,
        label: token.label,
        rules: [...token.rules],
        expires_at: timeOrNull(token.expiresAt),
        created_at: isoTime(token.createdAt),
      })),
      clients: exposures.clients(id).map(({ lastAt, ...rest }) => ({ ...rest, last_at: isoTime(lastAt) })),
      opened_at: isoTime(openedAt),
    };
  };

  /** The name that an agent holds already, or a new one at an entry. @throws SvcError `no_entry`, and as `NameHolder.claim` */
  const claimed = async (aid: Aid, wanted: string | undefined, at: Aid | undefined, token: string | null) => {
    const names = publicNames.list();
    const own = names.filter((one) => one.aid === aid && (at === undefined || one.entry === at));
    const known = own.find(({ name }) => wanted === undefined || name === wanted || name.startsWith(`${wanted}.`));
    if (known !== undefined) return known.name;
    const entries = publicNames.entries();
    const [entry = at] = at === undefined ? entries : [at];
    if (entry === undefined) throw new SvcError('no_entry');
    if (at === undefined && entries.length > 1)
      throw new SvcError('no_entry', { message: 'This node uses several entries. Name one with --at <node>.' });
    const label = wanted ?? labelOf(nameOf(aid), aid);
    return (await publicNames.claim(aid, label, entry, token)).name;
  };

  return {
    exposureOpen: async ({ aid, name, at, mode = 'tokens', rules = [], invitation_token: token }) => {
      if (mode === 'mcp')
        throw new SvcError('not_supported', {
          message: 'OAuth for MCP clients is not supported yet. Use a token, or "--only" with the path of a webhook.',
        });
      if ((mode === 'only') !== rules.length > 0)
        throw new SvcError('invalid_request', { message: 'Mode "only" needs rules, and other modes have none.' });
      const service = serviceOf(aid);
      if (service === null)
        throw new SvcError('no_inbound', { message: 'This agent has no service. Bind one with "svc serve".' });
      if (!service.acceptsCalls)
        throw new SvcError('tunnels_only', {
          message: 'The service of this agent accepts only tunnels. Bind it as host:port, without tcp://.',
        });
      const host = await claimed(aid, name, at, token ?? null);
      return view(exposures.open(aid, host, { mode, rules }));
    },
    exposureList: () => ({ exposures: exposures.list().map(view) }),
    exposureOff: async ({ id }) => {
      const { aid, host } = exposures.get(id);
      exposures.off(id);
      if (held(host) !== undefined) await publicNames.release(aid, host);
      return { ok: true };
    },
    exposureTokenAdd: ({ id, label, rules = [], expires_at: end }) => {
      const { row, token } = exposures.addToken(id, label, rules, end === undefined ? null : Date.parse(end));
      return { token, id: row.id, label };
    },
    exposureTokenRemove: ({ id, token }) => {
      exposures.removeToken(id, token);
      return { ok: true };
    },
  };
}
