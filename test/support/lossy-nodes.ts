/** Two nodes over the real engine, with a path that loses packets between them: for their connection and their lanes. */
import type { TestContext } from 'node:test';
import { KeyPair } from '../../src/foundation/identity/keys.ts';
import { UNHELPED } from '../../src/network/peers/dial.ts';
import type { BulkStreams } from '../../src/network/transport/types.ts';
import { TestLanes } from './bulk.ts';
import { NativeNode } from './link-process.ts';
import { LossyPath } from './lossy-path.ts';

const HOST = '127.0.0.1';
const ONE_WAY_MS = 20;

export interface LossyNodes {
  readonly near: NativeNode;
  readonly far: NativeNode;
  readonly lanes: { readonly near: TestLanes; readonly far: TestLanes };
}

interface Options {
  readonly loss: number;
  /** Longer packets are dropped, in bytes of UDP payload. */
  readonly maxBytes?: number;
  /** Replace the lanes of a side. */
  readonly near?: BulkStreams;
  readonly far?: BulkStreams;
}

export async function lossyNodes(
  t: TestContext,
  { loss, maxBytes, near: nearLanes, far: farLanes }: Options,
): Promise<LossyNodes> {
  const ports = { near: 0, far: 0 };
  const lanes = { near: TestLanes.behind(() => ports.near), far: TestLanes.behind(() => ports.far) };
  const near = new NativeNode(KeyPair.generate(), 0, false, undefined, nearLanes ?? lanes.near);
  const far = new NativeNode(KeyPair.generate(), 0, false, undefined, farLanes ?? lanes.far);
  await Promise.all([near.start(), far.start()]);
  const paths: LossyPath[] = [];
  const lossy = async (port: number): Promise<number> => {
    const path = await LossyPath.open({ target: { host: HOST, port }, oneWayMs: ONE_WAY_MS, loss, maxBytes });
    paths.push(path);
    return path.address.port;
  };
  ports.far = await lossy(lanes.far.socket.address()?.port ?? 0);
  const port = await lossy(far.endpoint.address.port);
  const location = { aid: far.aid, nodeKey: far.key.publicKey, addresses: [{ host: HOST, port }], ...UNHELPED };
  near.directory.set(far.aid, { ...location, delegationIssuedAt: 0 });
  t.after(async () => {
    for (const path of paths) path[Symbol.dispose]();
    await Promise.all([near.stop(), far.stop()]);
    await Promise.all([lanes.near, lanes.far].map(async (one) => await one[Symbol.asyncDispose]()));
  });
  return {
    near,
    far,
    lanes,
  };
}
