import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { MAX_READ_NOTES } from '../../src/foundation/domain/notes.ts';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { scaled } from '../support/scale.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

interface Event {
  readonly content: string;
  readonly meta: Readonly<Record<string, string>>;
}

/** A session of Claude Code: a client of the 2025 revisions that collects the events of the channel. */
class Session {
  readonly client = new Client({ name: 'claude-code', version: '2.1.80' }, { versionNegotiation: { mode: 'legacy' } });
  readonly events: Event[];

  private constructor(events: Event[]) {
    this.events = events;
  }

  static async start(t: TestContext, dataDir: string, events: Event[]): Promise<Session> {
    const session = new Session(events);
    const { client } = session;
    t.after(() => client.close());
    client.fallbackNotificationHandler = async ({ method, params }) => {
      assert.equal(method, 'notifications/claude/channel');
      const { content, meta } = params ?? {};
      assert.ok(typeof content === 'string' && typeof meta === 'object' && meta !== null);
      events.push({ content, meta: Object.fromEntries(Object.entries(meta)) });
    };
    const args = ['bin/svcd', '--data-dir', dataDir, '--mcp-stdio', '--mcp-channel'];
    await client.connect(
      new StdioClientTransport({
        command: process.execPath,
        args,
        env: { SVCD_MDNS: 'false' },
        stderr: 'ignore',
      }),
    );
    return session;
  }
}

/** The text of another agent in an event. */
function textIn({ content }: Event): string {
  const [, name, text] = /^<(untrusted-[0-9a-f]{16})>\n([^]*)\n<\/\1>$/.exec(content) ?? [];
  assert.ok(name !== undefined && text !== undefined, content);
  return text;
}

async function label(daemon: TestDaemon, aid: string, name: string): Promise<void> {
  await daemon.call('PUT', '/node/address-book', { aliases: { [aid]: name }, favorites: [] });
}

test('notes reach a session once each, over restarts of the daemon and of the session', async (t) => {
  const dataDir = temporaryDirectory(t);
  let daemon = await TestDaemon.start({ dataDir });
  t.after(() => daemon.stop());
  const to = await daemon.newAgent();
  const from = await daemon.newAgent();
  await label(daemon, from, 'bob');
  const events: Event[] = [];
  let session = await Session.start(t, dataDir, events);
  assert.deepEqual(session.client.getServerCapabilities()?.experimental, { 'claude/channel': {} });
  const { restarts, each } = scaled({ restarts: 3, each: 4 }, { restarts: 20, each: 50 });
  const sent: string[] = [];
  let sessions = 1;
  for (let round = 0; round < restarts; round++) {
    for (let i = 0; i < each; i++) {
      const text = `note ${round}.${i}`;
      await daemon.call('POST', `/agents/${from}/mailbox/send`, { recipient: to, text });
      sent.push(text);
    }
    if (round % 2 === 0) await eventually('some arrive', () => events.length > round * each);
    await daemon.kill();
    daemon = await TestDaemon.start({ dataDir });
    if (round % 3 !== 1) continue;
    await session.client.close();
    session = await Session.start(t, dataDir, events);
    sessions++;
  }
  const mailbox = async (read: boolean) =>
    (await daemon.call<{ messages: { text: string }[] }>('GET', `/agents/${to}/mailbox?read=${read}`)).messages;
  await eventually('all are read', async () => (await mailbox(false)).length === 0);
  // An item that a session had not confirmed when it ended arrives again, under the same name.
  const byItem = new Map(events.map((event) => [event.meta['item'], event]));
  assert.ok(events.length - byItem.size <= sessions - 1, `${events.length - byItem.size} items arrived twice`);
  assert.deepEqual([...byItem.values()].map(textIn).toSorted(), sent.toSorted());
  const { item, sent_at: sentAt, message_id: id, ...meta } = events[0]?.meta ?? {};
  assert.deepEqual(meta, { kind: 'note', to, from, label: 'bob' });
  assert.match(`${item} ${sentAt} ${id}`, /^\d+\.0 2\S+Z [0-9a-f]{64}$/);
  // A session that did not show them can find them.
  assert.deepEqual(
    (await mailbox(true)).map(({ text }) => text),
    sent.slice(-MAX_READ_NOTES),
  );
});
