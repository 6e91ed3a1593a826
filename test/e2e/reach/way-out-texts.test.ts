/** What a node tells its user in each network that allows little: status, netcheck, doctor and the error of a call. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Exit, exitText } from '../../../src/foundation/domain/exit.ts';
import { newIdentity } from '../../support/identities.ts';
import { LabDaemon } from '../../support/lab/daemons.ts';
import { Internet, OTHER_PUBLIC } from '../../support/lab/internet.ts';
import { behindLimits, type LimitKind } from '../../support/lab/limits/limits.ts';

const BOOTSTRAP = ['203.0.113.10:4121', '198.51.100.11:4121', '[2001:db8:0:1::10]:4121'];
/** All interfaces, also for IPv6. */
const EVERYWHERE = { listen: ':4121' };

/** How long connections may be idle, and passwords are valid, seconds. */
const SECONDS = 10;
/** How long UDP flows work, seconds. The node is certain after two of them, and a silence of ten seconds after each. */
const FLOW_SECONDS = 5;

interface Told {
  /** `svc status` and `svc netcheck`. */
  readonly wayOut: string;
  /** `svc doctor`. */
  readonly doctor: string;
  /** The error of a call; null in networks with a way out. */
  readonly error: string | null;
}

const OVER_TLS = 'over TLS through helper H';
const SILENT = 'no node answers over UDP';
const INSIDE = 'Connections between nodes inside stay encrypted.';

function well(why: string, by = '', doctor = why): Told {
  const through = by === '' ? '' : `, through the proxy ${by}`;
  const and = by === '' ? '' : ` and the proxy ${by}`;
  return {
    wayOut: `${OVER_TLS}${through}, because ${why}.`,
    doctor: `INFO this node is connected ${OVER_TLS}${and}: ${doctor}`,
    error: null,
  };
}

function cutOff(cause: string): Told {
  const reported = `${SILENT}. TLS does not work either. ${cause}`;
  return {
    wayOut: `none: ${reported}`,
    doctor: `FAIL ${SILENT}, and no helper can be reached over TLS`,
    error: `This node cannot reach any other node. N${reported.slice(1)}`,
  };
}

const NO_QUIC = 'the network drops QUIC';
const NARROW = 'only short UDP packets pass, and QUIC needs an MTU of 1,280 bytes';
const EXPIRE = 'the network drops UDP flows some time after their start';
const IPV6 = 'this machine has IPv6 only, and the record network uses IPv4';

const TOLD: readonly (readonly [LimitKind, Told])[] = [
  ['udp-blocked', well(SILENT)],
  ['tcp-443-only', well(SILENT)],
  ['quic-dropped', well(NO_QUIC, '', 'no node answers over QUIC')],
  ['mtu-1200', well(NARROW, '', 'no node answers over QUIC')],
  ['connect-proxy', well(SILENT, 'P')],
  ['inspected', { ...well(SILENT, 'P'), wayOut: `${well(SILENT, 'P').wayOut} The network decrypts TLS. ${INSIDE}` }],
  ['ipv6-only', well(IPV6, '', 'no node answers over IPv4')],
  ['ipv6-nat64', well(IPV6, '', 'no node answers over IPv4')],
  ['idle-cut', well(SILENT)],
  ['proxy-password-rotating', well(SILENT, 'P')],
  ['five-tuple', well(EXPIRE)],
  [
    'proxy-password',
    cutOff('The proxy P wants a password. Set HTTPS_PROXY to http://user:password@P, or set proxy_command.'),
  ],
  ['portal', cutOff('This network wants a login first. Open any website in a browser, and log in.')],
];

function plain(text: string): string {
  return text
    .replaceAll(/(?:203\.0\.113\.10|198\.51\.100\.11|\[?2001:db8:0:1::1[01]\]?):\d+/g, 'H')
    .replaceAll(/10\.\d+\.0\.1:3128/g, 'P');
}

interface Finding {
  readonly level: string;
  readonly what: string;
}

/** Looks agents up until something has happened: a node without requests notices no silence. */
async function whileUsed<T>(daemon: LabDaemon, event: Promise<T>): Promise<T> {
  const over = new AbortController();
  const outcome = event.finally(() => over.abort());
  // It may be rejected during a lookup.
  outcome.catch(() => {});
  while (!over.signal.aborted) await daemon.ask('POST', `/resolve/${newIdentity().aid}`, {});
  return await outcome;
}

async function toldBy(daemon: LabDaemon, kind: LimitKind, isReady: boolean): Promise<Told> {
  const decided = daemon.until('the way out is decided', (status) =>
    // A path that is too narrow is measured while TLS is used already.
    kind === 'mtu-1200'
      ? status.exit.trouble === 'path_mtu'
      : // UDP works at first.
        kind === 'five-tuple'
        ? status.exit.trouble === 'flows_expire' && status.exit.state === 'tls'
        : isReady
          ? status.network_ready && status.exit.state === 'tls'
          : status.exit.state === 'failed',
  );
  const { exit } = await (kind === 'five-tuple' ? whileUsed(daemon, decided) : decided);
  const checked = await daemon.call<{ exit: Exit }>('GET', '/node/netcheck');
  assert.equal(exitText(checked.exit), exitText(exit));
  const { findings } = await daemon.call<{ findings: Finding[] }>('GET', '/node/doctor');
  const finding = findings.find(({ what }) => /TLS/.test(what));
  const called = isReady ? null : await daemon.ask('POST', `/tunnel/${newIdentity().aid}`, {});
  return {
    wayOut: plain(exitText(exit)),
    doctor: plain(`${finding?.level} ${finding?.what}`),
    error: called === null ? null : plain(String((called.body as { message?: unknown }).message)),
  };
}

test('each network is explained in the same words by status, netcheck, doctor and errors', async (t) => {
  const internet = await Internet.start(t);
  if (internet === null) return;
  await using daemons = new AsyncDisposableStack();
  const start = async (...args: Parameters<typeof LabDaemon.start>) => daemons.use(await LabDaemon.start(...args));
  const helpers = [
    await start(await internet.publicMachine('helper', [10]), [], '', EVERYWHERE),
    await start(await internet.publicMachine('helper2', [11], OTHER_PUBLIC[0]), BOOTSTRAP.slice(0, 1), '', EVERYWHERE),
  ];
  for (const one of helpers) await one.until('strangers reach a helper', ({ nat_type }) => nat_type === 1);
  for (const [kind, expected] of TOLD)
    await t.test(kind, async () => {
      const seconds = kind === 'five-tuple' ? FLOW_SECONDS : SECONDS;
      const { machine, env, leave } = await behindLimits(internet, kind, kind, { seconds });
      try {
        // A user who does not know that the proxy wants a password.
        const used =
          kind === 'proxy-password' ? { HTTPS_PROXY: env['HTTPS_PROXY']?.replace(/\/\/.*@/, '//') ?? '' } : env;
        await using daemon = await LabDaemon.start(machine, BOOTSTRAP, '', { ...EVERYWHERE, env: used });
        assert.deepEqual(await toldBy(daemon, kind, expected.error === null), expected);
      } finally {
        leave();
      }
    });
});
