import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Echo, EchoService } from '../support/echo-service.ts';
import { eventually } from '../support/eventually.ts';
import { TestNetwork } from '../support/network.ts';

interface Answer {
  readonly status: number;
  readonly headers: Record<string, string[]>;
  readonly body: string;
  readonly truncated: boolean;
}

test('a third daemon finds an agent by service name and calls it with a proven identity', async () => {
  await using network = await TestNetwork.start(3);
  await using service = await EchoService.start();
  const [caller, provider, seeker] = [network.at(0), network.at(1), network.at(2)];
  const callerAid = await caller.newAgent();
  const providerAid = await provider.newAgent(service.address);
  await provider.call('POST', `/agents/${providerAid}/publish`);
  const brief = 'Translates between two languages';
  const offer = {
    services: ['lang.translate'],
    name: 'Translator',
    protocols: ['http'],
    tags: ['fast'],
    brief,
    meta: { url: 'https://example.org' },
    ttl: 3600,
  };
  // Publishing does not wait for a node that is slow for a moment.
  await eventually('two nodes store it', async () => {
    const { replicas } = await provider.call<{ replicas: number }>('POST', `/agents/${providerAid}/services`, offer);
    return replicas >= 2;
  });

  const found = await seeker.call<{ entries: Record<string, unknown>[] }>('POST', '/discover', {
    services: ['lang.translate'],
    filter: { tags: ['FAST'] },
  });
  assert.equal(found.entries.length, 1);
  assert.equal(found.entries[0]?.['aid'], providerAid);
  assert.equal(found.entries[0]?.['brief'], brief);

  const record = await seeker.call<{ aid: string; endpoints: string[]; ttl: number }>(
    'POST',
    `/resolve/${providerAid}`,
  );
  assert.equal(record.aid, providerAid);
  assert.equal(record.ttl, 3600);
  assert.match(record.endpoints[0] ?? '', /^quic:\/\/127\.0\.0\.1:\d+$/);

  const answer = await caller.call<Answer>('POST', `/fetch/${providerAid}`, {
    method: 'POST',
    path: '/translate?to=en',
    headers: { 'Content-Type': 'text/plain', 'Svc-Caller-Aid': 'aid1forged', svc_caller_aid: 'aid1forged' },
    body_base64: Buffer.from('Guten Tag').toString('base64'),
  });
  assert.equal(answer.status, 200);
  assert.equal(answer.truncated, false);
  const echo: Echo = JSON.parse(Buffer.from(answer.body, 'base64').toString('utf8'));
  assert.equal(echo.method, 'POST');
  assert.equal(echo.url, '/translate?to=en');
  assert.equal(echo.body, 'Guten Tag');
  assert.equal(echo.headers['svc-caller-aid'], callerAid);
  assert.equal(echo.headers['svc-local-aid'], providerAid);
  assert.ok(!Object.hasOwn(echo.headers, 'svc_caller_aid'));
});

test('a call to an agent of the same daemon carries the same identity', async () => {
  await using network = await TestNetwork.start(1);
  await using service = await EchoService.start();
  const daemon = network.at(0);
  const callerAid = await daemon.newAgent();
  const calledAid = await daemon.newAgent(service.address);
  const ambiguous = await daemon.request('POST', `/fetch/${calledAid}`, { path: '/' });
  assert.equal(ambiguous.status, 400);
  assert.equal((ambiguous.body as { error: string }).error, 'local_aid_required');
  const answer = await daemon.call<Answer>('POST', `/fetch/${calledAid}`, { path: '/', local_aid: callerAid });
  const echo: Echo = JSON.parse(Buffer.from(answer.body, 'base64').toString('utf8'));
  assert.equal(echo.headers['svc-caller-aid'], callerAid);
});

test('each failure of a call has its own code', async () => {
  await using network = await TestNetwork.start(2);
  await using service = await EchoService.start();
  const [caller, called] = [network.at(0), network.at(1)];
  await caller.newAgent();
  const bound = await called.newAgent(service.address);
  const unbound = await called.newAgent();
  for (const aid of [bound, unbound]) await called.call('POST', `/agents/${aid}/publish`);
  const failure = async (aid: string): Promise<[number, string]> => {
    const { status, body } = await caller.request('POST', `/fetch/${aid}`, { path: '/' });
    return [status, (body as { error: string }).error];
  };
  assert.deepEqual(await failure(unbound), [503, 'no_inbound']);
  await service.stop();
  assert.deepEqual(await failure(bound), [502, 'inbound_unreachable']);
  await called.call('DELETE', `/agents/${unbound}`);
  const unknown = (await caller.call<{ aid: string }>('POST', '/identity/generate')).aid;
  assert.deepEqual(await failure(unknown), [404, 'resolve_failed']);
  await called.kill();
  assert.deepEqual(await failure(bound), [502, 'connect_failed']);
  assert.deepEqual(await failure('aid1nonsense'), [400, 'bad_aid']);
});
