/** Assistants wait for each other with `wait_s`: over HTTP, over stdio, and through a proxy process. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Assistant, type Values } from '../support/assistant.ts';
import { TestDaemon } from '../support/daemon.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

interface Page {
  readonly entries: readonly Values[];
  readonly scanned_to: number;
}

test('an answer ends the wait of the assistant that asked', async (t) => {
  const dataDir = temporaryDirectory(t);
  await using daemon = await TestDaemon.start({ dataDir });
  await using alice = await Assistant.overHttp(`${daemon.api}/mcp/`, 'legacy');
  await using bob = await Assistant.overStdio(dataDir, 'modern', ['--mcp-profile', 'full']);
  const register = async (assistant: Assistant): Promise<string> => {
    const { operational_private_key_hex, delegation_proof_hex } = await assistant.call('svc_identity_generate');
    const keys = { operational_private_key_hex, delegation_proof_hex };
    return (await assistant.call<{ aid: string }>('svc_agent_register', keys)).aid;
  };
  const [a, b] = [await register(alice), await register(bob)];

  // The chat request is an event. Bob accepts it, which is the news that Alice waits for.
  const invited = bob.call<{ events: Values[]; last_seq: number }>('svc_events_poll', { aid: b, wait_s: 60 });
  await alice.call('chat_request', { aid: a, peer: b });
  assert.partialDeepStrictEqual((await invited).events, [{ type: 'chat.invites' }]);
  await bob.call('chat_accept', { aid: b, peer: a });

  const asked = bob.call<Page>('chat_read', { aid: b, peer: a, wait_s: 60 });
  const question = await alice.call<{ seq: number }>('chat_send', { aid: a, peer: b, text: 'Which port?' });
  assert.partialDeepStrictEqual((await asked).entries, [{ dir: 'in', text: 'Which port?' }]);
  const answered = alice.call<Page>('chat_read', { aid: a, peer: b, after_seq: question.seq, wait_s: 60 });
  await bob.call('chat_send', { aid: b, peer: a, text: '8080' });
  assert.partialDeepStrictEqual((await answered).entries, [{ dir: 'in', text: '8080' }]);

  const noted = bob.call<{ messages: Values[] }>('svc_mailbox_list', { aid: b, wait_s: 60 });
  await alice.call('svc_mailbox_send', { aid: a, recipient: b, text: 'A note' });
  assert.partialDeepStrictEqual((await noted).messages, [{ sender: a, msg_type: 3, text: 'A note' }]);

  const { group_id, link } = await alice.call<{ group_id: string; link: string }>('group_create', { aid: a });
  await bob.call('group_join', { aid: b, link });
  const joined = await bob.call<{ scanned_to_seq: number }>('group_read', { aid: b, group_id });
  const from = { aid: b, group_id, after_seq: joined.scanned_to_seq, kind: 'msg', wait_s: 60 };
  const written = bob.call<Page>('group_read', from);
  await alice.call('group_append', { aid: a, group_id, text: 'To all' });
  assert.partialDeepStrictEqual((await written).entries, [{ author: a, text: 'To all' }]);

  // Over REST, too.
  const late = fetch(`${daemon.api}/agents/${a}/chat/peers/${b}?after_seq=2&wait_s=60`);
  await bob.call('chat_send', { aid: b, peer: a, text: 'Or 8081' });
  assert.partialDeepStrictEqual(await (await late).json(), { entries: [{ text: 'Or 8081' }] });
});
