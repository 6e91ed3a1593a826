/** A daemon behind a real router that is killed and restarted: it keeps its helpers and publishes nothing new. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { LabDaemon, type LabStatus } from '../../support/lab/daemons.ts';
import { Internet, OTHER_PUBLIC } from '../../support/lab/internet.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const BOOTSTRAP = ['203.0.113.10:4121'];
/** NAT types of records. */
const [PUBLIC, PORT_RESTRICTED] = [1, 3];
/** Target number of helpers. */
const WANTED = 3;

interface Records {
  readonly records: readonly { readonly seq: number; readonly record_base64: string }[];
}

const isHelped = ({ helpers, nat_type }: LabStatus): boolean =>
  helpers.length === WANTED && nat_type === PORT_RESTRICTED;

test('a daemon behind a router keeps its helpers over a restart, publishes no new record, and replaces stopped helpers', async (t) => {
  const internet = await Internet.start(t);
  if (internet === null) return;
  await using daemons = new AsyncDisposableStack();
  const isPublic = ({ nat_type }: LabStatus): boolean => nat_type === PUBLIC;
  const open: LabDaemon[] = [];
  const hosts: string[] = [];
  for (const [i, network] of [undefined, ...OTHER_PUBLIC, OTHER_PUBLIC[0], OTHER_PUBLIC[0]].entries()) {
    const machine = await internet.publicMachine(`open${i}`, [10 + i], network);
    const daemon = daemons.use(await LabDaemon.start(machine, i === 0 ? [] : BOOTSTRAP));
    if (i > 0) await daemon.until('strangers reach it', isPublic);
    open.push(daemon);
    hosts.push(`${network ?? '203.0.113'}.${10 + i}`);
  }
  const [first] = open;
  assert.ok(first);
  const machine = await internet.behind('home', ['cone']);
  const dataDir = temporaryDirectory(t);
  const start = async (): Promise<LabDaemon> => daemons.use(await LabDaemon.start(machine, BOOTSTRAP, '', { dataDir }));
  const before = await start();
  const { helpers } = await before.until('it has helpers', isHelped);
  const aid = await before.serve();
  const published = async (): Promise<Records> => await first.call('GET', `/resolve/${aid}/records?type=1`);
  const record = await published();
  assert.equal(record.records.length, 1);
  // The service of the agent keeps running.
  const end = async (daemon: LabDaemon): Promise<void> => daemon.signal('SIGKILL');
  await end(before);

  const second = await start();
  const again = await second.until('it has helpers again', isHelped);
  assert.deepEqual(again.helpers, helpers);
  const { listen } = await first.call<{ listen: string }>('POST', `/tunnel/${aid}`, {});
  assert.equal(await first.echo(listen, 'still here'), 'still here');
  assert.deepEqual(await published(), record);

  await end(second);
  // The helper that others dial keeps running.
  const isGone = (helper: string): boolean => helper === helpers.find((one) => !one.startsWith(`${hosts[0]}:`));
  const gone = helpers.filter(isGone);
  await Promise.all(
    gone.map((helper) => end(open[hosts.findIndex((host) => helper.startsWith(`${host}:`))] ?? second)),
  );
  const third = await start();
  const mended = await third.until('it has running helpers', isHelped);
  assert.deepEqual(
    helpers.filter((helper) => mended.helpers.includes(helper)),
    helpers.filter((helper) => !isGone(helper)),
  );
  await eventually(
    'its record names the new helper',
    async () => (await published()).records[0]?.seq !== record.records[0]?.seq,
  );
});
