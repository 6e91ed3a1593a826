/** How commands reach the daemon: with a token, only over connections that are proven to be to it. */
import type { Agent } from 'node:http';
import type { ClientOptions } from '../../operations/client.ts';
import { httpFetch } from './http-fetch.ts';

export interface DaemonPlace {
  readonly baseUrl: string;
  readonly token: string;
  readonly dataDir: string | null;
}

/** What a client needs to send requests. Few commands carry a token: only those load the proof. */
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
      return await (await import('../client/patient-fetch.ts')).patientFetch(url, init, proven);
    },
  };
}
