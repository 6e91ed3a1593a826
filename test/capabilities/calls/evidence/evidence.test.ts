import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { MAX_EVIDENCE_AGE_S } from '../../../../src/capabilities/calls/evidence/call-evidence.ts';
import { contentDigest } from '../../../../src/capabilities/calls/evidence/signature-base.ts';
import { type Call, MAX_SIGNED_BODY_BYTES } from '../../../../src/capabilities/calls/http-caller.ts';
import { unixSeconds } from '../../../../src/foundation/clock.ts';
import { CLOCK_SKEW_S } from '../../../../src/foundation/domain/time.ts';
import { type CallWorld, callWorld, textOf, valuesOf, webService } from '../../../support/call-world.ts';
import { documentedPython, documentedVerifier, needsPython, type ServedCall } from '../../../support/evidence-world.ts';
import { TestClock } from '../../../support/test-clock.ts';

const provenCaller = await documentedVerifier();

/** A world with a service that records its requests. */
async function served(t: TestContext, clock?: TestClock) {
  const world = await callWorld(t, { clock });
  world.givesEvidence = true;
  const asked: ServedCall[] = [];
  const service = await webService(t, (request, response) => {
    const { method = '', url = '', headers, rawHeaders } = request;
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.once('end', () => {
      asked.push({ method, url, headers, rawHeaders, body: Buffer.concat(chunks) });
      response.end('ok');
    });
  });
  world.bound.set(world.remote, service.bound);
  const call = async (parts: Partial<Call> = {}): Promise<ServedCall> => {
    assert.equal(await textOf(await world.call(parts)), 'ok');
    const last = asked.at(-1);
    assert.ok(last);
    return last;
  };
  return { world, asked, call };
}

function proven(world: CallWorld, one: ServedCall): string | null {
  return provenCaller(one, one.body, { me: world.remote, seen: new Set(), now: unixSeconds(world.clock) });
}

function evidenceOf({ rawHeaders }: ServedCall): string[] {
  return ['signature-input', 'signature', 'svc-caller-delegation'].flatMap((name) => valuesOf(rawHeaders, name));
}

test('a call carries evidence of caller, request and called agent, which a service verifies with Node alone', async (t) => {
  const { world, call } = await served(t);
  const get = await call({ path: '/translate?to=de&x=%20' });
  assert.equal(proven(world, get), world.local);
  const post = await call({ method: 'POST', path: '/', body: Buffer.from('{"text":"Guten Tag"}') });
  assert.equal(proven(world, post), world.local);
  assert.equal(post.headers['content-digest'], contentDigest(post.body));
  assert.equal(proven(world, await call({ method: 'OPTIONS', path: '*' })), world.local);
  assert.notEqual(post.headers['signature'], (await call({ method: 'POST', body: post.body })).headers['signature']);
});

test('a service verifies evidence with Python', { skip: needsPython() }, async (t) => {
  const { world, call } = await served(t);
  const get = await call({ path: '/?q=1' });
  const post = await call({ method: 'POST', path: '/a', body: Buffer.from('hello') });
  const forged = { ...post, url: '/b' };
  const emptied = { ...post, body: Buffer.alloc(0) };
  const expected = { me: world.remote, now: unixSeconds(world.clock) };
  assert.deepEqual(documentedPython([get, post, forged, emptied], expected), [world.local, world.local, null, null]);
});

test('calls carry evidence only if the caller enables it', async (t) => {
  const { world, call } = await served(t);
  world.givesEvidence = false;
  const plain = await call({ method: 'POST', body: Buffer.from('x') });
  assert.deepEqual([...evidenceOf(plain), plain.headers['content-digest']], [undefined]);
});

test('a short body of known length is covered, any other body streams and is not covered', async (t) => {
  const { world, call } = await served(t);
  const body = (size: number) => Readable.from([Buffer.alloc(size, 'a')]);
  const short = await call({ method: 'POST', body: body(MAX_SIGNED_BODY_BYTES), bodyLength: MAX_SIGNED_BODY_BYTES });
  assert.equal(proven(world, short), world.local);
  const size = MAX_SIGNED_BODY_BYTES + 1;
  for (const streamed of [
    await call({ method: 'POST', body: body(size), bodyLength: size }),
    await call({ method: 'POST', body: body(5) }),
  ]) {
    assert.equal(streamed.headers['content-digest'], undefined);
    assert.match(String(streamed.headers['signature-input']), /^svcd=\("@method" "@request-target" "svc-caller-aid"/);
    // A service that requires a covered body rejects it.
    assert.equal(proven(world, streamed), null);
  }
});

test('no call is sent if its body breaks off', async (t) => {
  const { world, asked } = await served(t);
  const broken = new Readable({ read() {} });
  broken.push('abc');
  const call = world.call({ method: 'POST', body: broken, bodyLength: 10 });
  broken.destroy(new Error('gone'));
  await assert.rejects(call, { code: 'cancelled' });
  assert.deepEqual(asked, []);
});

test('signatures and digests of the program stay, its forged evidence is removed', async (t) => {
  const { world, call } = await served(t);
  const one = await call({
    method: 'POST',
    body: Buffer.from('x'),
    headers: [
      ...['Signature-Input', 'sig1=("@method");keyid="mine"', 'Signature', 'sig1=:AAAA:'],
      ...['Signature-Input', 'a=(), svcd=("@method");keyid="evil"', 'Signature', 'svcd=:AAAA:'],
      ...['Signature_Input', 'svcd=()', 'Svc-Caller-Delegation', ':AAAA:'],
      ...['Content-Digest', 'sha-512=:AAAA:'],
    ],
  });
  assert.deepEqual(
    valuesOf(one.rawHeaders, 'signature').map((text) => text.slice(0, 5)),
    ['sig1=', 'svcd='],
  );
  assert.deepEqual(valuesOf(one.rawHeaders, 'signature_input'), []);
  assert.equal(valuesOf(one.rawHeaders, 'svc-caller-delegation').length, 1);
  assert.equal(one.headers['content-digest'], 'sha-512=:AAAA:');
  assert.match(String(one.headers['signature-input']), /^sig1=\("@method"\);keyid="mine", svcd=\(.*"content-digest"/);
  world.givesEvidence = false;
  const stranger = await call({
    headers: ['Signature-Input', 'svcd=("@method")', 'Signature', 'svcd=:AAAA:', 'Signature', 'sig1=:AAAA:'],
  });
  assert.deepEqual(evidenceOf(stranger), ['sig1=:AAAA:']);
});

test('evidence that is expired, of another agent, of another key, or already used is rejected', async (t) => {
  const clock = new TestClock();
  const { world, call, asked } = await served(t, clock);
  const one = await call();
  /** The same evidence, replayed by a program. */
  const replay = async (served: ServedCall, caller = world.local) => {
    const headers = evidenceHeaders(served);
    world.givesEvidence = false;
    try {
      return await world.caller.request(caller, world.remote, { method: 'GET', path: '/', headers, body: null });
    } finally {
      world.givesEvidence = true;
    }
  };
  const refusal = { code: 'bad_evidence' };
  await assert.rejects(replay(one), refusal);
  clock.advance((MAX_EVIDENCE_AGE_S + CLOCK_SKEW_S + 1) * 1000);
  await assert.rejects(replay(one), refusal);
  // Another agent of the same node, with the evidence of the first.
  const other = world.near.host();
  const two = await call();
  await assert.rejects(replay(two, other.aid), refusal);
  assert.equal(asked.length, 2);
});

function evidenceHeaders({ rawHeaders }: ServedCall): string[] {
  const names = new Set(['signature-input', 'signature', 'svc-caller-delegation', 'content-digest']);
  return rawHeaders.flatMap((text, i) =>
    i % 2 === 0 && names.has(text.toLowerCase()) ? [text, rawHeaders[i + 1] ?? ''] : [],
  );
}
