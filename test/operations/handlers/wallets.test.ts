import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { toHex } from '../../../src/foundation/bytes.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { parseAid } from '../../../src/foundation/identity/aid.ts';
import { decodeDelegation } from '../../../src/foundation/identity/delegation.ts';
import { verifyDelegationSignature } from '../../../src/foundation/identity/delegation-verifier.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { HandlerWorld } from '../../support/handler-world.ts';
import { hex } from '../../support/vectors.ts';
import { type EthereumSigned, walletVectors } from '../../support/wallet-vectors.ts';

interface Generated {
  readonly chain: string;
  readonly aid: string;
  readonly master_private_key_hex: string;
  readonly operational_private_key_hex: string;
  readonly delegation_proof_hex: string;
}

interface Proof {
  readonly aid: string;
  readonly delegation_proof_hex: string;
  readonly message: string;
  readonly operational_public_key_hex: string;
  readonly operational_private_key_hex?: string;
}

const { ethereum, refused_for_the_first: refused, paralism } = walletVectors;
const [first] = ethereum;

function registration(signed: EthereumSigned) {
  const { agent, issued_at, expires_at, eth_signature_hex, operational_private_key_seed_hex } = signed;
  return { agent, issued_at, expires_at, eth_signature_hex, operational_private_key_seed_hex };
}

function messageRequest({ agent, issued_at, expires_at, operational_public_key_hex }: EthereumSigned) {
  return { agent, issued_at, expires_at, operational_public_key_hex };
}

describe('operations on wallets', () => {
  let world: HandlerWorld;

  beforeEach(() => {
    world = new HandlerWorld();
  });
  afterEach(() => world.store.close());

  const generate = (body: object = {}): Promise<Generated> => world.call<Generated>('walletGenerate', { body });
  const registerProof = (operational: string, proof: string): Promise<unknown> =>
    world.call('agentRegister', {
      body: { operational_private_key_hex: operational, delegation_proof_hex: proof },
    });

  /** The error of an operation that must fail. It must contain no secret of the request. */
  async function failure(name: string, body: Readonly<Record<string, unknown>>): Promise<SvcError> {
    const error: unknown = await world.call(name, { body }).then(
      () => null,
      (thrown: unknown) => thrown,
    );
    assert.ok(error instanceof SvcError, `${name} accepts ${JSON.stringify(body)}`);
    const shown = `${error.message} ${JSON.stringify(error.details)}`;
    for (const [key, value] of Object.entries(body))
      if (key.includes('private')) assert.ok(!shown.includes(String(value)), shown);
    return error;
  }

  test('a generated wallet owns an identity that registers', async () => {
    const made = [
      await generate(),
      await generate({ chain: 'ethereum' }),
      await generate({ chain: 'paralism' }),
    ] as const;
    assert.deepEqual(
      made.map(({ chain }) => chain),
      ['ethereum', 'ethereum', 'paralism'],
    );
    assert.equal(new Set(made.flatMap((one) => [one.master_private_key_hex, one.operational_private_key_hex])).size, 6);
    for (const one of made) {
      assert.equal(one.aid, parseAid(one.aid));
      await registerProof(one.operational_private_key_hex, one.delegation_proof_hex);
      const agent = await world.call<{ scheme: string }>('agentGet', { params: { aid: one.aid } });
      assert.equal(agent.scheme, one.chain);
      const again = await world.call<Proof>(`${one.chain}Proof`, {
        body: { [`${one.chain}_private_key_hex`]: one.master_private_key_hex, issued_at: 1, expires_at: 0 },
      });
      assert.equal(again.aid, one.aid, 'the master key is the wallet');
    }
    assert.equal((await failure('walletGenerate', { chain: 'bitcoin' })).code, 'invalid_request');
  });

  test('the message equals that of wallet libraries, for every form of the request', async () => {
    for (const signed of ethereum) {
      const { operational_private_key_seed_hex, operational_public_key_hex, ...rest } = signed;
      const { agent, issued_at, expires_at } = rest;
      const base = { agent, issued_at, expires_at };
      for (const body of [
        { ...base, operational_public_key_hex },
        { ...base, operational_private_key_seed_hex },
        { ...base, operational_public_key_hex: `0x${operational_public_key_hex.toUpperCase()}`, scope: 0 },
        { ...base, agent: ` ${agent.toLowerCase()}`, operational_private_key_seed_hex, scope: 1 },
      ])
        assert.deepEqual(await world.call('ethereumMessage', { body }), { message: signed.message }, signed.made_by);
    }
  });

  test('signatures of wallet libraries register their agents', async () => {
    for (const signed of ethereum) {
      assert.deepEqual(await world.call('ethereumRegister', { body: registration(signed) }), {
        aid: signed.agent,
        status: 'registered',
      });
      const agent = await world.call<{ delegation: unknown; scheme: string }>('agentGet', {
        params: { aid: signed.agent },
      });
      assert.equal(agent.scheme, 'ethereum');
      assert.deepEqual(agent.delegation, {
        issued_at: new Date(signed.issued_at * 1000).toISOString(),
        expires_at: signed.expires_at === 0 ? null : new Date(signed.expires_at * 1000).toISOString(),
      });
      assert.equal(
        toHex(world.agents.identity(parseAid(signed.agent))?.delegation.operationalKey ?? new Uint8Array()),
        signed.operational_public_key_hex,
      );
    }
    assert.equal(new Set(ethereum.map((one) => one.made_by)).size, 2);
  });

  test('registering accepts both forms of the key, a service, and a repetition', async () => {
    const { operational_private_key_seed_hex: seed, ...rest } = registration(first);
    const body = { ...rest, operational_private_key_hex: `${seed}${first.operational_public_key_hex}` };
    for (const service_tcp of ['127.0.0.1:9000', '127.0.0.1:9001']) {
      await world.call('ethereumRegister', { body: { ...body, service_tcp } });
      const agent = await world.call<{ service_tcp: string }>('agentGet', { params: { aid: first.agent } });
      assert.equal(agent.service_tcp, service_tcp);
    }
    assert.equal(world.agents.count(), 1);
    const own = await failure('ethereumRegister', { ...body, service_tcp: '127.0.0.1:2121' });
    assert.equal(own.code, 'bad_service_address');
  });

  test('a signature for another text or by another wallet is refused, and the response names its signer', async () => {
    for (const { name, eth_signature_hex, signer } of refused) {
      const error = await failure('ethereumRegister', { ...registration(first), eth_signature_hex });
      assert.equal(error.code, 'bad_delegation', name);
      assert.equal(error.details?.['reason'], 'the agent did not sign it', name);
      assert.notEqual(error.details?.['signer'], first.agent, name);
      if (signer !== undefined) assert.equal(error.details?.['signer'], signer, name);
    }
    const [, second] = ethereum;
    for (const change of [
      { issued_at: first.issued_at - 1 },
      { expires_at: 4_102_444_800 },
      { agent: second.agent },
      { operational_private_key_seed_hex: second.operational_private_key_seed_hex },
      { eth_signature_hex: second.eth_signature_hex },
    ]) {
      const error = await failure('ethereumRegister', { ...registration(first), ...change });
      assert.equal(error.code, 'bad_delegation', JSON.stringify(change));
      assert.equal(error.details?.['reason'], 'the agent did not sign it', JSON.stringify(change));
    }
    assert.equal(world.agents.count(), 0);
  });

  test('each error of a registration is distinct', async () => {
    const now = world.clock.now() / 1000;
    const rs = first.eth_signature_hex.slice(0, -2);
    const native = await world.call<{ aid: string }>('identityGenerate');
    const faults: readonly [object, string, string][] = [
      [{ eth_signature_hex: rs }, 'bad_delegation', 'a wallet signature has 65 bytes'],
      [{ eth_signature_hex: `${rs}1d` }, 'bad_delegation', 'the signature has an unknown recovery byte'],
      [{ eth_signature_hex: 'no hex' }, 'bad_delegation', 'the signature is not 65 bytes in hex'],
      [{ eth_signature_hex: '00'.repeat(100) }, 'bad_delegation', 'the signature is not 65 bytes in hex'],
      [{ eth_signature_hex: `${'00'.repeat(64)}1b` }, 'bad_delegation', 'no key can be recovered from the signature'],
      [{ issued_at: now + 61 }, 'bad_delegation', 'it is not valid yet'],
      [{ expires_at: now - 61 }, 'bad_delegation', 'it has expired'],
      [{ issued_at: now, expires_at: now }, 'bad_delegation', 'expires_at is not after issued_at'],
      [{ agent: paralism[0].agent }, 'bad_aid', 'not an Ethereum address'],
      [{ agent: native.aid }, 'bad_aid', 'not an Ethereum address'],
      [{ agent: first.agent.replace('a', 'A') }, 'bad_aid', 'wrong EIP-55 checksum'],
    ];
    for (const [change, code, reason] of faults) {
      const error = await failure('ethereumRegister', { ...registration(first), ...change });
      assert.deepEqual([error.code, error.details?.['reason']], [code, reason], JSON.stringify(change));
    }
    const key = await failure('ethereumRegister', {
      ...registration(first),
      operational_private_key_seed_hex: first.operational_private_key_seed_hex.slice(2),
    });
    assert.equal(key.code, 'bad_key');
    assert.equal(world.agents.count(), 0);
  });

  test('times are Unix seconds, the scope is 1, and exactly one form of the key is given', async () => {
    const message = messageRequest(first);
    const seed = { operational_private_key_seed_hex: first.operational_private_key_seed_hex };
    const { operational_public_key_hex: _, ...keyless } = message;
    for (const body of [
      { ...message, issued_at: Date.UTC(2026, 0, 1) },
      { ...message, expires_at: -1 },
      { ...message, expires_at: 1.5 },
      { ...message, issued_at: '1700000000' },
      { ...message, ...seed },
      keyless,
      { ...keyless, operational_private_key_hex: seed.operational_private_key_seed_hex },
    ])
      assert.equal((await failure('ethereumMessage', body)).code, 'invalid_request', JSON.stringify(body));
    const { operational_private_key_seed_hex: __, ...unkeyed } = registration(first);
    const full = { operational_private_key_hex: first.operational_private_key_seed_hex };
    for (const body of [unkeyed, { ...unkeyed, ...full, ...seed }])
      assert.equal((await failure('ethereumRegister', body)).code, 'invalid_request', JSON.stringify(body));
    assert.equal((await failure('ethereumMessage', { ...message, scope: 2 })).code, 'bad_delegation');
    assert.equal((await failure('ethereumMessage', { ...message, expires_at: 1 })).code, 'bad_delegation');
    assert.equal((await failure('ethereumMessage', { ...keyless, operational_public_key_hex: '00' })).code, 'bad_key');
    const proof = { ethereum_private_key_hex: first.ethereum_private_key_hex, issued_at: 1, expires_at: 0 };
    for (const keys of [
      { ...seed, ...full },
      { ...seed, operational_public_key_hex: first.operational_public_key_hex },
    ])
      assert.equal((await failure('ethereumProof', { ...proof, ...keys })).code, 'invalid_request');
    assert.equal((await failure('ethereumProof', { ...proof, scope: 2 })).code, 'bad_delegation');
  });

  test('a proof has the signature that wallet libraries make with the same key and text', async () => {
    for (const signed of ethereum) {
      const { issued_at, expires_at, ethereum_private_key_hex, operational_public_key_hex } = signed;
      const body = { ethereum_private_key_hex, operational_public_key_hex, issued_at, expires_at };
      const proof = await world.call<Proof>('ethereumProof', { body });
      assert.equal(proof.message, signed.message);
      const delegation = decodeDelegation(hex(proof.delegation_proof_hex));
      const expected = hex(signed.eth_signature_hex);
      assert.deepEqual(delegation.signature.subarray(0, 64), expected.subarray(0, 64), signed.made_by);
      assert.equal((delegation.signature[64] ?? 0) - 27, (expected[64] ?? 0) % 27);
      verifyDelegationSignature(delegation);
    }
    for (const signed of paralism) {
      const { issued_at, expires_at, paralism_private_key_hex, operational_private_key_seed_hex } = signed;
      const body = { paralism_private_key_hex, operational_private_key_seed_hex, issued_at, expires_at };
      const proof = await world.call<Proof>('paralismProof', { body });
      const { aid, message, operational_public_key_hex } = proof;
      assert.deepEqual(
        { aid, message, operational_public_key_hex },
        {
          aid: signed.agent,
          message: signed.message,
          operational_public_key_hex: signed.operational_public_key_hex,
        },
      );
      assert.equal(aid, parseAid(signed.p2pkh_address));
      assert.ok(!('operational_private_key_hex' in proof), 'the key of the request is not returned');
      const delegation = decodeDelegation(hex(proof.delegation_proof_hex));
      assert.equal(toHex(delegation.signature), signed.compressed_signature_hex, signed.made_by);
      await registerProof(operational_private_key_seed_hex, proof.delegation_proof_hex);
    }
  });

  test('a proof without an operational key generates one', async () => {
    const issued_at = world.clock.now() / 1000;
    for (const [operation, key] of [
      ['ethereumProof', { ethereum_private_key_hex: first.ethereum_private_key_hex }],
      ['paralismProof', { paralism_private_key_hex: paralism[0].paralism_private_key_hex }],
    ] as const) {
      const body = { ...key, issued_at, expires_at: issued_at + 60 };
      const [one, two] = [await world.call<Proof>(operation, { body }), await world.call<Proof>(operation, { body })];
      const seed = one.operational_private_key_hex ?? '';
      assert.equal(toHex(KeyPair.fromSeed(hex(seed)).publicKey), one.operational_public_key_hex);
      assert.notEqual(one.operational_public_key_hex, two.operational_public_key_hex);
      await registerProof(seed, one.delegation_proof_hex);
      assert.equal(world.agents.get(parseAid(one.aid)).window.expiresAt, issued_at + 60);
    }
  });

  test('invalid keys are refused, and the error does not contain them', async () => {
    const n = 'fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141';
    for (const name of ['ethereum', 'paralism'])
      for (const key of ['00'.repeat(32), n, 'ab'.repeat(31), 'my wallet', '0x'])
        assert.equal(
          (await failure(`${name}Proof`, { [`${name}_private_key_hex`]: key, issued_at: 1, expires_at: 0 })).code,
          'bad_key',
          key,
        );
  });

  test("a newer delegation changes the key and keeps the agent's data; an older one is a conflict", async () => {
    await world.call('ethereumRegister', { body: { ...registration(first), service_tcp: '127.0.0.1:9000' } });
    await world.call('serviceRegister', { params: { aid: first.agent }, body: { services: ['a.b'] } });
    const issued_at = first.issued_at + 1;
    const newer = await world.call<Proof>('ethereumProof', {
      body: { ethereum_private_key_hex: first.ethereum_private_key_hex, issued_at, expires_at: 0 },
    });
    await registerProof(newer.operational_private_key_hex ?? '', newer.delegation_proof_hex);
    const agent = await world.call<{ services: string[]; service_tcp: string }>('agentGet', {
      params: { aid: first.agent },
    });
    assert.deepEqual([agent.services, agent.service_tcp], [['a.b'], '127.0.0.1:9000']);
    const identity = world.agents.identity(parseAid(first.agent));
    assert.equal(toHex(identity?.delegation.operationalKey ?? new Uint8Array()), newer.operational_public_key_hex);
    const error = await failure('ethereumRegister', registration(first));
    assert.deepEqual([error.code, error.status], ['operational_key_mismatch', 409]);
  });
});
