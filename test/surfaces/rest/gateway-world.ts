/** An API with the gateway, and a remote agent with a real web service. */
import type { RequestListener } from 'node:http';
import type { TestContext } from 'node:test';
import { SvcError } from '../../../src/foundation/errors.ts';
import { type Aid, parseAid } from '../../../src/foundation/identity/aid.ts';
import { gatewayStreams } from '../../../src/operations/gateway.ts';
import { bindStreams } from '../../../src/operations/handlers/exchange.ts';
import { gatewayHandlers } from '../../../src/surfaces/rest/gateway.ts';
import { type CallWorld, callWorld, webService } from '../../support/call-world.ts';
import { startWorld, type World, type WorldOptions } from './support.ts';

export interface GatewayWorld {
  readonly calls: CallWorld;
  /** Another agent of the calling node. */
  readonly agentAid: Aid;
  readonly api: World;
  /** `/aid/<AID>` of the remote agent. */
  readonly prefix: string;
}

export async function gatewayWorld(
  t: TestContext,
  listener: RequestListener | null,
  options: WorldOptions = {},
): Promise<GatewayWorld> {
  const calls = await callWorld(t);
  if (listener !== null) calls.bound.set(calls.remote, (await webService(t, listener)).bound);
  const agentAid = calls.near.host().aid;
  const requireLocal = (aid: Aid): void => {
    if (aid !== agentAid) throw new SvcError('not_found', { thing: 'agent' });
  };
  const gateway = gatewayHandlers({ caller: calls.caller, nodeAid: calls.local, agent: parseAid, requireLocal });
  const streams = bindStreams(gatewayStreams, gateway);
  const api = await startWorld(t, { ...options, streams });
  return { calls, agentAid, api, prefix: `/aid/${calls.remote}` };
}
