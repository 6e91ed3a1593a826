/** Real daemons behind routers whose networks change under them, during a tunnel transfer and a chat. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { SLEEP_MS } from '../../../src/foundation/stall.ts';
import { eventually } from '../../support/eventually.ts';
import { Chat } from '../../support/lab/chat.ts';
import { LabDaemon } from '../../support/lab/daemons.ts';
import { Internet } from '../../support/lab/internet.ts';

/** The NAT type of a node that strangers reach. */
const PUBLIC = 1;
const BOOTSTRAP = ['203.0.113.10:4121'];

test('a tunnel and a chat survive network changes', async (t) => {
  const internet = await Internet.start(t);
  if (internet === null) return;
  const machine = await internet.behind('mobile', ['cone']);
  const open = await internet.publicMachine('helper2', [11]);
  const carryToCafe = await internet.otherNetwork(machine, 'cafe', 'cone');
  await using helper = await LabDaemon.start(await internet.publicMachine('helper', [10]), []);
  const [second, third, mobile, home] = await Promise.all([
    LabDaemon.start(open, BOOTSTRAP),
    LabDaemon.start(await internet.publicMachine('helper3', [12]), BOOTSTRAP),
    LabDaemon.start(machine, BOOTSTRAP),
    LabDaemon.start(await internet.behind('home', ['cone']), BOOTSTRAP),
  ]);
  // Before the lab ends, which would leave the daemons behind.
  await using running = new AsyncDisposableStack();
  for (const daemon of [second, third, mobile, home]) running.use(daemon);
  const isPublic = ({ nat_type }: { readonly nat_type: number }): boolean => nat_type === PUBLIC;
  await Promise.all([helper, second, third].map((one) => one.until('strangers reach it', isPublic)));
  await Promise.all([mobile, home].map((one) => one.until('it is helped', ({ helpers }) => helpers.length === 3)));
  const [caller, called] = await Promise.all([mobile.serve(), home.serve()]);
  const { listen } = await mobile.call<{ readonly listen: string }>('POST', `/tunnel/${called}`, { local_aid: caller });
  const chat = await Chat.between(mobile, caller, home, called);
  await mobile.pump(listen);

  const survive = async (what: string, change: () => Promise<unknown>): Promise<void> => {
    await chat.say();
    await change();
    const changedAt = performance.now();
    const sent = chat.say();
    const { disorder } = await mobile.flows();
    await mobile.reaches(listen);
    const ms = performance.now() - changedAt;
    await sent;
    // That it is soon is held by `npm run lab:roaming`: here the machine does other things too.
    t.diagnostic(`${what}: ${Math.round(ms)} ms`);
    assert.equal(disorder, 0);
  };

  await t.test('carried to another network', () => survive('another network', carryToCafe));

  await t.test('a router loses its NAT table', () => survive('a router that forgot', () => internet.forget('home')));

  await t.test('a router gets another address, which no interface here shows', () =>
    survive('another outer address', () => internet.readdress('cafe')),
  );

  await t.test('a helper ends without a word', async () => {
    await survive('a dead helper', () => third.signal('SIGKILL'));
    await survive('another outer address there, with a helper less', () => internet.readdress('home'));
    for (const one of [mobile, home]) await one.until('two helpers are left', ({ helpers }) => helpers.length === 2);
  });

  await t.test('both machines sleep', () =>
    survive('a sleep', async () => {
      await Promise.all([mobile, home].map((one) => one.signal('SIGSTOP')));
      // Time itself is what they find out about.
      await sleep(SLEEP_MS + 500);
      await Promise.all([mobile, home].map((one) => one.signal('SIGCONT')));
    }),
  );

  await t.test('a public node without calls moves to another address and is found there', async () => {
    const aid = await second.serve();
    const changedAt = performance.now();
    await open.ip([
      'addr del 203.0.113.11/24 dev wan0',
      'addr add 203.0.113.13/24 dev wan0',
      'route replace default via 203.0.113.254',
    ]);
    await eventually('its record has the new address', async () => {
      const { body } = await helper.ask('POST', `/resolve/${aid}`, {});
      return JSON.stringify(body).includes('quic://203.0.113.13:4122');
    });
    const { path } = await home.call<{ readonly path: string }>('POST', `/tunnel/${aid}`, {});
    const ms = performance.now() - changedAt;
    t.diagnostic(`a public node that moved: ${Math.round(ms)} ms`);
    assert.equal(path, 'direct');
    await second.until('strangers reach it again', isPublic);
  });

  await eventually('all messages were delivered', async () => (await chat.heard()).length === chat.sent.length);
  assert.deepEqual(await chat.heard(), chat.sent, 'once each, in order');
});
