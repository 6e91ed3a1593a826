/** An agent with all its data moves to another machine, and everything continues there. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { svcJson, svcOk } from '../support/cli.ts';
import { TestDaemon } from '../support/daemon.ts';
import { type Echo, EchoService } from '../support/echo-service.ts';
import { eventually } from '../support/eventually.ts';
import {
  base64,
  callService,
  chatTexts,
  fullAgent,
  groupTexts,
  noteTexts,
  published,
  SECRET,
  sendNote,
  throughPort,
  tool,
} from '../support/moving.ts';
import { ready, TestNetwork } from '../support/network.ts';
import { quietPort } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

interface View {
  readonly seq: number;
  readonly services: readonly string[];
  readonly profile?: { readonly name?: string };
  readonly acl: { readonly default: string; readonly allow: readonly { readonly label?: string }[] };
}

test('an agent moves with all its data, and a third agent finds it, calls it and chats with it', async (t) => {
  await using network = await TestNetwork.start(2);
  const away = network.at(0);
  const old = network.at(1);
  await using service = await EchoService.start();
  await using friendService = await EchoService.start();
  const services = { own: service.address, friend: friendService.address };
  const { aid, friend, group, tunnelPort, seq } = await fullAgent(old, away, services);
  await old.call('PUT', `/agents/${aid}/evidence`, { enabled: true });
  const card = { protocolVersion: '0.3.0', url: `http://${service.address}/a2a`, name: 'Mover', skills: [] };
  const { object_id: cardId } = await old.call<{ object_id: string }>('PUT', `/agents/${aid}/card`, { card });
  // The port is free again for the other machine.
  const at = { local_aid: aid, local_port: await quietPort() };
  const { url: origin } = await old.call<{ url: string }>('POST', `/origins/${friend}`, at);
  const bundle = await old.call<Record<string, unknown>>('GET', `/agents/${aid}/bundle`);
  assert.ok(!JSON.stringify(bundle).includes(SECRET));
  const [file, password] = [join(temporaryDirectory(t), 'a.agent'), join(temporaryDirectory(t), 'password')];
  writeFileSync(password, 'correct horse\n', { mode: 0o600 });
  await svcOk(old, 'agents', 'export', aid, '-o', file, '--password-file', password);
  await old.stop();
  // Events while the agent is on no machine.
  await away.call('POST', `/agents/${friend}/chat/send`, { peer: aid, text: 'three' });
  await tool(away, 'group_append', { aid: friend, group_id: group, body: base64('third') });
  await sendNote(away, friend, aid, 'while away');

  await using home = await TestDaemon.start({ bootstrap: [away.dhtAddress] });
  await ready(home);
  const moved = await svcJson(home, 'agents', 'import', file, '--password-file', password);
  assert.deepEqual(moved, {
    aid,
    status: 'registered',
    service_tcp: service.address,
    services: 1,
    tunnels: 1,
    origins: 1,
    ports_taken: [],
    notes: 1,
    conversations: 1,
    groups: 1,
  });
  const again = await home.request('POST', '/agents/import', bundle);
  assert.deepEqual([again.status, (again.body as { error: string }).error], [409, 'agent_exists']);

  const stranger = await published(away);
  const found = await eventually('the new machine publishes it', async () => {
    const answer = await away.request('POST', `/resolve/${aid}`);
    const record = answer.body as { seq: number; endpoints: string[] };
    return answer.status === 200 && record.endpoints.includes(`quic://${home.quicAddress}`) && record;
  });
  assert.ok(found.seq > seq);
  const { entries } = await eventually('its service is found', async () => {
    const answer = await away.call<{ entries: { aid: string; name: string }[] }>('POST', '/discover', {
      services: ['test.moving'],
    });
    return answer.entries.some((entry) => entry.aid === aid) && answer;
  });
  assert.equal(entries.find((entry) => entry.aid === aid)?.name, 'Mover');
  const { records } = await away.call<{ records: { rec_type: number; payload_base64: string }[] }>(
    'GET',
    `/resolve/${aid}/records?type=7`,
  );
  assert.equal(records[0]?.payload_base64, base64('custom'));
  const view = await home.call<View>('GET', `/agents/${aid}`);
  assert.deepEqual([view.services, view.profile?.name], [['test.moving'], 'The mover']);
  assert.deepEqual([view.acl.default, view.acl.allow[0]?.label], ['deny', 'clients']);

  const called = (token?: string) =>
    callService(away, aid, { local_aid: stranger, ...(token === undefined ? {} : { access_token: token }) });
  await eventually('the service answers a caller with the secret', async () => (await called(SECRET)).status === 200);
  assert.equal((await called('another secret')).status, 403);
  assert.equal((await called()).status, 403);
  assert.match(await eventually('the tunnel', () => throughPort(tunnelPort)), /"url":"\/tunnel"/);
  const echo = (await (await fetch(`${origin}/origin`)).json()) as Echo;
  assert.deepEqual([echo.url, echo.headers['svc-caller-aid']], ['/origin', aid]);
  assert.match(String(echo.headers['signature-input']), /^svcd=/);
  await home.call('POST', `/agents/${aid}/acl/allow`, { aid: stranger });
  const read = await away.call<{ object_id: string; is_current: boolean }>(
    'GET',
    `/resolve/${aid}/card?local_aid=${stranger}`,
  );
  assert.deepEqual([read.object_id, read.is_current], [cardId, true]);

  await eventually('the chat continues', async () => (await chatTexts(home, aid, friend)).includes('three'));
  await home.call('POST', `/agents/${aid}/chat/send`, { peer: friend, text: 'four' });
  const all = ['one', 'two', 'three', 'four'];
  await eventually(
    'the friend reads the reply',
    async () => (await chatTexts(away, friend, aid)).length === all.length,
  );
  assert.deepEqual(await chatTexts(away, friend, aid), all);
  assert.deepEqual(await chatTexts(home, aid, friend), all);
  await tool(home, 'group_append', { aid, group_id: group, body: base64('fourth') });
  for (const [daemon, member] of [
    [home, aid],
    [away, friend],
  ] as const)
    await eventually('the group continues', async () => (await groupTexts(daemon, member, group)).length === 4);
  await eventually('both notes', async () => (await noteTexts(home, aid)).length === 2);
  assert.deepEqual(new Set(await noteTexts(home, aid)), new Set(['a note', 'while away']));
});

test('if the old machine still runs, it stops renewing the agent, which answers from the new machine', async () => {
  await using network = await TestNetwork.start(3);
  const [away, old, home] = [network.at(0), network.at(1), network.at(2)];
  const aid = await published(old);
  const bundle = await old.call<Record<string, unknown>>('GET', `/agents/${aid}/bundle`);
  await home.call('POST', '/agents/import', bundle);
  const seqAt = async (endpoint: string): Promise<number | false> => {
    const answer = await away.request('POST', `/resolve/${aid}`);
    const record = answer.body as { seq: number; endpoints: string[] };
    return answer.status === 200 && record.endpoints.includes(`quic://${endpoint}`) && record.seq;
  };
  const seq = await eventually('it is published from the new machine', () => seqAt(home.quicAddress));
  // A change at the old machine publishes the agent from there again, as the response shows.
  await old.call('POST', `/agents/${aid}/publish`);
  const back = await eventually('the old machine publishes it again', () => seqAt(old.quicAddress));
  assert.ok(back > seq);
});

test('an invalid bundle changes nothing', async () => {
  await using network = await TestNetwork.start(2);
  const [old, home] = [network.at(0), network.at(1)];
  const [aid, other] = [await published(old), await published(old)];
  await old.call('POST', `/agents/${aid}/acl/allow`, { aid: other });
  const bundle = await old.call<Record<string, unknown>>('GET', `/agents/${aid}/bundle`);
  const foreign = await old.call<Record<string, unknown>>('GET', `/agents/${other}/bundle`);
  const state = async (): Promise<string> => JSON.stringify(await home.call('GET', '/agents'));
  const before = await state();
  const refused = async (change: object): Promise<string> => {
    const answer = await home.request('POST', '/agents/import', { ...bundle, ...change });
    assert.equal(await state(), before);
    return `${answer.status} ${(answer.body as { error: string }).error}`;
  };
  assert.equal(await refused({ aid: other }), '400 bad_file');
  assert.equal(
    await refused({ operational_private_key_hex: foreign['operational_private_key_hex'] }),
    '400 bad_delegation',
  );
  assert.equal(await refused({ svcd_agent: 3 }), '400 invalid_request');
  assert.equal(await refused({ surprise: 1 }), '400 invalid_request');
  assert.equal(await refused({ service_tcp: home.api.replace('http://', '') }), '400 bad_service_address');
  const endpoints = { type: 1, name: '', payload_base64: '', ttl: 3600 };
  assert.equal(await refused({ records: { seq: 1, kept: [endpoints, endpoints] } }), '400 bad_file');
  assert.equal(await refused({ label: 'a\u0007b' }), '400 invalid_request');
  assert.equal(await refused({ label: 'rack/3' }), '400 invalid_request');
  const labeled = { ...bundle, label: 'mover' };
  assert.equal((await home.request('POST', '/agents/import', labeled)).status, 200);
  const { aliases } = await home.call<{ aliases: unknown }>('GET', '/node/address-book');
  assert.deepEqual(aliases, { [aid]: 'mover' });
});
