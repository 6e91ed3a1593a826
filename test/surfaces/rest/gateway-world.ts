/** An API with the gateway, and behind a link an agent with a real web service. */
import type { RequestListener } from 'node:http';
import type { TestContext } from 'node:test';
import { gatewayStreams } from '../../../src/operations/gateway.ts';
import { bindStreams } from '../../../src/operations/handlers/exchange.ts';
import { gatewayHandlers } from '../../../src/surfaces/rest/gateway.ts';
import { type CallWorld, callWorld, webService } from '../../support/call-world.ts';
import { startWorld, type World, type WorldOptions } from './support.ts';

export interface GatewayWorld {
  readonly calls: CallWorld;
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
  const streams = bindStreams(gatewayStreams, gatewayHandlers({ caller: calls.caller, nodeAid: calls.local }));
  const api = await startWorld(t, { ...options, streams });
  return { calls, api, prefix: `/aid/${calls.remote}` };
}
