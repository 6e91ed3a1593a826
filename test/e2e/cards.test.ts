/**
 * A2A through svcd: the official client, unchanged, at the local address of a remote agent that uses the official SDK.
 */
import assert from 'node:assert/strict';
import { createPublicKey } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { AgentCard, verifyAgentCardSignature } from '@a2a-js/sdk';
import { ClientFactory } from '@a2a-js/sdk/client';
import { decodeEd25519Multikey } from '../../src/foundation/identity/multikey.ts';
import { isObject, memberOf } from '../../src/foundation/json.ts';
import { A2aAgent, cardOf, messageOf, textOf } from '../support/a2a-agent.ts';
import { svcOk } from '../support/cli.ts';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { delegateAnew, newIdentity, type TestIdentity } from '../support/identities.ts';
import { ready } from '../support/network.ts';

const CARD_PATH = '/.well-known/agent-card.json';

interface Shown {
  readonly aid: string;
  readonly kind: string;
  readonly card: Readonly<Record<string, unknown>>;
  readonly object_id: string;
  readonly signed_at: string;
  readonly is_current: boolean;
}

/** The interfaces of a card. */
function urlsOf(card: unknown): unknown[] {
  const list = memberOf(card, 'supportedInterfaces');
  assert.ok(Array.isArray(list));
  return list.map((one) => memberOf(one, 'url'));
}

/** The code and the reason of an error response. */
function faultOf(body: unknown): unknown[] {
  return [memberOf(body, 'error'), memberOf(body, 'details', 'reason')];
}

describe('an A2A agent at a local address', () => {
  let near: TestDaemon;
  let far: TestDaemon;
  let agent: A2aAgent;
  let identity: TestIdentity;
  let aid: string;
  let caller: string;
  let url: string;
  const dataDir = mkdtempSync(join(tmpdir(), 'svcd-cards-'));

  before(async () => {
    agent = await A2aAgent.start();
    far = await TestDaemon.start();
    near = await TestDaemon.start({ dataDir, bootstrap: [far.dhtAddress] });
    await Promise.all([ready(near), ready(far)]);
    identity = newIdentity(Math.floor(Date.now() / 1000) - 1000);
    ({ aid } = identity);
    await register(identity);
    await far.call('POST', `/agents/${aid}/publish`);
    caller = await near.newAgent();
    ({ url } = await near.call<{ url: string }>('POST', `/origins/${aid}`));
  });

  after(async () => {
    await Promise.all([near.stop(), far.stop()]);
    agent.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  /** Registers the agent at the far daemon, or replaces its key. */
  async function register({ credentials }: TestIdentity): Promise<void> {
    await far.call('POST', '/agents', {
      operational_private_key_hex: credentials.operationalPrivateKeyHex,
      delegation_proof_hex: credentials.delegationProofHex,
      service_tcp: `127.0.0.1:${agent.port}`,
    });
  }

  /** Response of the local address for a card that the agent serves. */
  async function shown(text: string, path = CARD_PATH): Promise<unknown[]> {
    agent.shown.set(path, text);
    const response = await fetch(url + path, { redirect: 'manual' });
    agent.shown.delete(path);
    if (response.status !== 502) {
      await response.body?.cancel();
      return [response.status];
    }
    assert.equal(response.headers.get('svc-error'), 'bad_card');
    return faultOf(await response.json());
  }

  test('the card points to the local address and is marked as rewritten', async () => {
    const response = await fetch(url + CARD_PATH, { headers: { 'if-none-match': '"1"' } });
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('svc-card'), 'rewritten');
    assert.equal(response.headers.get('etag'), null);
    const card: unknown = await response.json();
    assert.deepEqual(urlsOf(card), [`${url}/a2a/jsonrpc`]);
    assert.deepEqual(
      { ...cardOf(agent.port), supportedInterfaces: 0 },
      { ...(isObject(card) ? card : {}), supportedInterfaces: 0 },
    );
    const headers = { host: `localhost:${new URL(url).port}` };
    const answer: IncomingMessage = await new Promise((resolve, reject) => {
      httpRequest(url + CARD_PATH, { headers, agent: false }, resolve)
        .on('error', reject)
        .end();
    });
    let named = '';
    for await (const chunk of answer) named += String(chunk);
    assert.deepEqual(urlsOf(JSON.parse(named)), [`http://localhost:${new URL(url).port}/a2a/jsonrpc`]);
  });

  test('the official client needs only the local address: messages, streams, the extended card', async () => {
    const client = await new ClientFactory().createFromUrl(url);
    const answer = await client.sendMessage({
      tenant: '',
      message: messageOf('hello', 'm1'),
      configuration: undefined,
      metadata: undefined,
    });
    assert.ok('parts' in answer);
    assert.equal(textOf(answer), 'echo: hello');
    const states: string[] = [];
    const params = { tenant: '', message: messageOf('stream it', 'm2'), configuration: undefined, metadata: undefined };
    for await (const { payload } of client.sendMessageStream(params)) states.push(payload?.$case ?? '');
    assert.deepEqual(states, ['task', 'statusUpdate']);
    const extended = await client.getAgentCard();
    assert.equal(extended.name, 'Echo for friends');
    assert.deepEqual(
      extended.supportedInterfaces.map((one) => one.url),
      [`${url}/a2a/jsonrpc`],
    );
    assert.deepEqual([...new Set(agent.callers)], [caller]);
  });

  test('attack table: a card that points elsewhere, or belongs to another agent, is rejected', async () => {
    const own = cardOf(agent.port);
    const to = (address: string): string => JSON.stringify({ ...own, supportedInterfaces: [{ url: address }] });
    assert.deepEqual(await shown(to(`http://127.0.0.1:${new URL(near.api).port}/`)), ['bad_card', 'special_address']);
    assert.deepEqual(await shown(to('http://169.254.169.254/latest/')), ['bad_card', 'special_address']);
    assert.deepEqual(await shown(to('http://[fe80::1]/')), ['bad_card', 'special_address']);
    assert.deepEqual(await shown(to('https://evil.example/')), ['bad_card', 'foreign_address']);
    assert.deepEqual(await shown(to(`svc://${caller}/a2a`)), ['bad_card', 'swapped']);
    assert.deepEqual(await shown('https://evil.example/card.json'), ['bad_card', 'foreign_address']);
    assert.deepEqual(await shown('/elsewhere.json'), ['bad_card', 'foreign_address']);
    assert.deepEqual(await shown('/.well-known/agent.json'), [302]);
    assert.deepEqual(await shown('<html></html>'), ['bad_card', 'not_a_card']);
    assert.deepEqual(await shown(`"${'x'.repeat(70_000)}"`), ['bad_card', 'too_large']);
    const protectedHeader = Buffer.from(JSON.stringify({ alg: 'EdDSA', kid: 'k', jku: 'https://evil.example/' }));
    const signatures = [{ protected: protectedHeader.toString('base64url'), signature: 'AA' }];
    assert.deepEqual(await shown(JSON.stringify({ ...own, signatures })), ['bad_card', 'foreign_root']);
    for (const path of [
      '/.well-known/agent.json',
      '/extendedAgentCard',
      '/agent/authenticatedExtendedCard',
      '/v1/card',
    ])
      assert.deepEqual(await shown(to('http://169.254.169.254/'), path), ['bad_card', 'special_address'], path);
  });

  test('a signed card is published and found, and the official SDK verifies it even if its server is down', async () => {
    const service = `http://127.0.0.1:${agent.port}`;
    const published = await svcOk(far, 'publish', 'test.echo', '--from', service, '--aid', aid, '-y', '--json');
    const { card: objectId } = JSON.parse(published);
    agent.shown.set(CARD_PATH, null);
    const found = await near.call<Shown>('GET', `/resolve/${aid}/card`);
    agent.shown.delete(CARD_PATH);
    assert.deepEqual([found.aid, found.kind, found.object_id, found.is_current], [aid, 'a2a', objectId, true]);
    assert.deepEqual(urlsOf(found.card), [`svc://${aid}/a2a/jsonrpc`]);
    await verifyAgentCardSignature(async (kid, jku) => {
      assert.deepEqual([kid, jku], [aid, undefined]);
      const did = String(memberOf(found.card, 'signatures', '0', 'header', 'key'));
      const x = Buffer.from(decodeEd25519Multikey(did.replace('did:key:', '')) ?? []).toString('base64url');
      return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    })(AgentCard.fromJSON(found.card));
    assert.match(await svcOk(near, 'card', aid), /^name: +Echo[^]*state: +verified/m);
    // If its server serves the signed card, it points to the local address and its signature is verified.
    agent.shown.set(CARD_PATH, JSON.stringify(found.card));
    const served = await fetch(url + CARD_PATH);
    agent.shown.delete(CARD_PATH);
    assert.equal(served.headers.get('svc-card'), 'rewritten; signature=verified');
    const local: unknown = await served.json();
    assert.deepEqual([urlsOf(local), memberOf(local, 'signatures')], [[`${url}/a2a/jsonrpc`], undefined]);
  });

  test('the command that signs a card reports which interfaces are lost, and why', async () => {
    const card = cardOf(agent.port);
    const interfaces = memberOf(card, 'supportedInterfaces');
    assert.ok(Array.isArray(interfaces));
    const grpc = { url: 'localhost:1', protocolBinding: 'GRPC', protocolVersion: '1.0' };
    const file = join(dataDir, 'card.json');
    writeFileSync(file, JSON.stringify({ ...card, supportedInterfaces: [...interfaces, grpc] }));
    const set = ['agents', 'card', 'set', aid, file];
    const { left_out, card: signed } = JSON.parse(await svcOk(far, ...set, '--json'));
    assert.deepEqual(left_out, [{ protocol_binding: 'GRPC', address: 'localhost:1', service_port: agent.port }]);
    assert.deepEqual(urlsOf(signed), [`svc://${aid}/a2a/jsonrpc`]);
    const text = await svcOk(far, ...set);
    assert.match(
      text,
      /signed and published.*\nOmitted: its GRPC interface at localhost:1, because .*\nBind both with "svc inbound bind/,
    );
    writeFileSync(file, JSON.stringify(card));
    assert.match(await svcOk(far, ...set), /^[^\n]+ is signed and published as object \w+\.$/);
  });

  test('a rotated key invalidates the card that the old key signed, and signs it again', async () => {
    const before = await near.call<Shown>('GET', `/resolve/${aid}/card`);
    assert.equal(before.is_current, true);
    await register(delegateAnew(identity.master, Math.floor(Date.now() / 1000)));
    let renewed = before;
    await eventually('the card is signed again and published', async () => {
      renewed = await far.call<Shown>('GET', `/agents/${aid}/card`);
      const { status, body } = await near.request('GET', `/resolve/${aid}/card`);
      // Until the new profile is published, the old card is found and refused.
      if (status === 502) assert.deepEqual(faultOf(body), ['bad_card', 'replayed']);
      return renewed.object_id !== before.object_id && memberOf(body, 'object_id') === renewed.object_id;
    });
    const after = await near.call<Shown>('GET', `/resolve/${aid}/card`);
    assert.equal(after.object_id, renewed.object_id);
    assert.deepEqual(await shown(JSON.stringify(before.card)), ['bad_card', 'replayed']);
  });

  test('while its node is down, the card is available and calls fail with a network error', async () => {
    const known = await near.call<Shown>('GET', `/resolve/${aid}/card`);
    await far.stop();
    const away = await near.call<Shown>('GET', `/resolve/${aid}/card`);
    assert.deepEqual([away.object_id, away.card], [known.object_id, known.card]);
    // The local address serves the published card because the service is down.
    const response = await fetch(url + CARD_PATH);
    assert.equal(response.headers.get('svc-card'), 'rewritten; signature=verified; service=away');
    assert.deepEqual(urlsOf(await response.json()), [`${url}/a2a/jsonrpc`]);
    const message = await fetch(`${url}/a2a/jsonrpc`, { method: 'POST', body: '{}' });
    await message.body?.cancel();
    // The stopped node was the only other node.
    assert.deepEqual([message.status, message.headers.get('svc-error')], [503, 'network_unavailable']);
  });
});
