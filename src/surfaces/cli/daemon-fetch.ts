/** How commands reach the daemon: requests with a token use only connections that are proven to end at the daemon. */
import type { Agent } from 'node:http';
import type { ClientOptions } from '../../operations/client.ts';
import { httpFetch } from './http-fetch.ts';

export interface DaemonPlace {
  readonly baseUrl: string;
  readonly token: string;
  readonly dataDir: string | null;
}

/** The functions a client needs to send requests. The proof is loaded only if there is a token. */
export function daemonFetch({ baseUrl, token, dataDir }: DaemonPlace): Pick<ClientOptions, 'fetch' | 'streamFetch'> {
  if (token === '') return { fetch: (url, init) => httpFetch(url, init) };
  let loaded: Promise<Agent | undefined> | undefined;
  const agent = (): Promise<Agent | undefined> => {
    loaded ??= import('../proven-agent.ts').then(({ provenAgent }) => provenAgent(baseUrl, { token, dataDir }));
    return loaded;
  };
  return {
    fetch: async (url, init) => await httpFetch(url, init, await agent()),
    streamFetch: async (url, init) => {
      const proven = await agent();
      if (proven === undefined) return await fetch(url, init);
      return await (await import('../client/unlimited-fetch.ts')).unlimitedFetch(url, init, proven);
    },
  };
}
