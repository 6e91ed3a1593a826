import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { ready, TestNetwork } from '../support/network.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

interface Message {
  readonly message_id: string;
  readonly sender: string;
  readonly msg_type: number;
  readonly body_base64: string;
}

function note(recipient: string, text: string): object {
  return { recipient, msg_type: 3, body_base64: Buffer.from(text).toString('base64') };
}

async function list(daemon: TestDaemon, aid: string): Promise<readonly Message[]> {
  return (await daemon.call<{ messages: Message[] }>('GET', `/agents/${aid}/mailbox`)).messages;
}

test('a note reaches an online recipient immediately, and exactly once', async () => {
  await using network = await TestNetwork.start(3);
  const [near, far] = [network.at(0), network.at(1)];
  const sender = await near.newAgent();
  const recipient = await far.newAgent();
  for (const [daemon, aid] of [
    [near, sender],
    [far, recipient],
  ] as const)
    await daemon.call('POST', `/agents/${aid}/publish`);
  const sent = await eventually('the recipient has published its key', async () => {
    const answer = await near.request('POST', `/agents/${sender}/mailbox/send`, note(recipient, 'Hello'));
    return answer.status === 200 && (answer.body as { message_id: string; delivered: boolean; replicas: number });
  });
  // On a machine that is slow for a moment the network gets the note first.
  assert.ok(sent.delivered || sent.replicas > 0);
  const [first, second] = await eventually('the note', async () => {
    const waiting = await list(far, recipient);
    return waiting.length > 0 && waiting;
  });
  assert.equal(second, undefined);
  assert.equal(first?.sender, sender);
  assert.equal(first?.message_id, sent.message_id);
  assert.equal(Buffer.from(first?.body_base64 ?? '', 'base64').toString(), 'Hello');
  const status = await far.call<{ pending?: Record<string, { mailbox: number }> }>('GET', '/status');
  assert.equal(status.pending?.[recipient]?.mailbox, 1);
  const polled = await far.call<{ messages: Message[] }>('POST', `/agents/${recipient}/mailbox/poll`, {});
  assert.equal(polled.messages.length, 1);
  assert.deepEqual(await list(far, recipient), []);
});

test('a note waits on the network for an offline recipient, and arrives when it is back', async (t) => {
  const dataDir = temporaryDirectory(t);
  await using network = await TestNetwork.start(3);
  const near = network.at(0);
  const bootstrap = [near.dhtAddress];
  const away = await TestDaemon.start({ dataDir, bootstrap });
  await ready(away);
  const sender = await near.newAgent();
  const recipient = await away.newAgent();
  await away.call('POST', `/agents/${recipient}/publish`);
  await eventually('the recipient has published its key', async () => {
    const { records } = await near.call<{ records: { rec_type: number }[] }>('GET', `/resolve/${recipient}/records`);
    return records.some((record) => record.rec_type === 0x11);
  });
  await away.kill('SIGKILL');
  const sent = await near.call<{ replicas: number; delivered: boolean }>(
    'POST',
    `/agents/${sender}/mailbox/send`,
    note(recipient, 'See you'),
  );
  assert.equal(sent.delivered, false);
  assert.ok(sent.replicas >= 2);
  await using back = await TestDaemon.start({ dataDir, bootstrap });
  const messages = await eventually('the note arrives', async () => {
    const waiting = await list(back, recipient);
    return waiting.length > 0 && waiting;
  });
  assert.equal(messages.length, 1);
  assert.equal(messages[0]?.sender, sender);
});
