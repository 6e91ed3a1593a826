/** Asks a router for ports by UPnP: the Internet Gateway Device, versions 1 and 2. */
import type { Address } from '../../../foundation/address.ts';
import type { Clock } from '../../../foundation/clock.ts';
import { MAX_PORT } from '../../../foundation/domain/tunnels.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { askRouter } from './router-http.ts';
import { searchRouters, urlAt } from './ssdp.ts';
import type { GrantedPort, PortGrantor } from './types.ts';
import {
  externalHostIn,
  faultIn,
  reservedPortIn,
  soapRequest,
  UPNP_ERRORS,
  type WanService,
  wanServiceIn,
} from './upnp-messages.ts';

/** Outer ports that are asked for, one after the other, where they are taken. */
const MAX_PORTS_TRIED = 4;
/** Outer ports by chance are this one or above: those below belong to services. */
const FIRST_CHANCE_PORT = 1024;
/** Shown in the list of the router. */
const DESCRIPTION = 'svcd';

interface UpnpOptions {
  readonly ownHost: string;
  /** Where routers are searched; only tests choose another than the multicast address. */
  readonly ssdp?: Address;
  /** True for an address in our own network that may be a router. */
  readonly mayBeRouter: (host: string) => boolean;
}

interface UpnpDependencies {
  readonly clock: Clock;
  /** A number from 0 to below 1. */
  readonly random: () => number;
}

type Arguments = Readonly<Record<string, string | number>>;

/** What a router answered: its text, or the code of its error. */
type Answer = { readonly text: string } | { readonly fault: number };

export class UpnpGrantor implements PortGrantor {
  readonly protocol = 'upnp';
  readonly #service: WanService;
  readonly #control: URL;
  readonly #ownHost: string;
  readonly #deps: UpnpDependencies;

  private constructor(service: WanService, control: URL, ownHost: string, dependencies: UpnpDependencies) {
    this.#service = service;
    this.#control = control;
    this.#ownHost = ownHost;
    this.#deps = dependencies;
  }

  /**
   * Finds a router; null where none answers that maps ports.
   * @throws SvcError `connect_failed` where nothing can be searched here
   */
  static async find(
    options: UpnpOptions,
    dependencies: UpnpDependencies,
    signal: AbortSignal,
  ): Promise<UpnpGrantor | null> {
    for (const url of await searchRouters(dependencies.clock, options, signal)) {
      const { status, text } = await askRouter(dependencies.clock, { url }, signal).catch(() => ({
        status: 0,
        text: '',
      }));
      const service = status === 200 ? wanServiceIn(text) : null;
      const control = service === null ? null : urlAt(service.control, url.hostname, url);
      if (service !== null && control !== null) return new UpnpGrantor(service, control, options.ownHost, dependencies);
    }
    return null;
  }

  async grant(
    internalPort: number,
    suggestedPort: number,
    lifetimeS: number,
    signal: AbortSignal,
  ): Promise<GrantedPort> {
    const address = await this.#act('GetExternalIPAddress', {}, signal);
    const host = 'text' in address ? externalHostIn(address.text) : null;
    if (host === null) throw refused('it has no outer address');
    const port = await this.#map(internalPort, suggestedPort, lifetimeS, signal);
    return { external: { host, port }, lifetimeS };
  }

  async release(_internalPort: number, externalPort: number, signal: AbortSignal): Promise<void> {
    const args = { NewRemoteHost: '', NewExternalPort: externalPort, NewProtocol: 'UDP' };
    const answer = await this.#act('DeletePortMapping', args, signal);
    if ('fault' in answer) throw refused(`error ${answer.fault}`);
  }

  async #map(internalPort: number, suggestedPort: number, lifetimeS: number, signal: AbortSignal): Promise<number> {
    let port = suggestedPort;
    let lease = lifetimeS;
    let chooses = this.#service.chooses;
    let fault = 0;
    // Each turn changes one thing that the router did not like.
    for (let tries = 0; tries < MAX_PORTS_TRIED; tries++) {
      const args = this.#mappingOf(internalPort, port, lease);
      const answer = await this.#act(chooses ? 'AddAnyPortMapping' : 'AddPortMapping', args, signal);
      if ('text' in answer) return (chooses ? reservedPortIn(answer.text) : null) ?? port;
      ({ fault } = answer);
      if (fault === UPNP_ERRORS.onlyPermanent && lease > 0) lease = 0;
      else if (chooses) chooses = false;
      else if (fault === UPNP_ERRORS.conflict)
        port = FIRST_CHANCE_PORT + Math.floor(this.#deps.random() * (MAX_PORT + 1 - FIRST_CHANCE_PORT));
      else break;
    }
    throw refused(`error ${fault}`);
  }

  /** The arguments of a mapping, in the order of the standard. */
  #mappingOf(internalPort: number, externalPort: number, lease: number): Arguments {
    return {
      NewRemoteHost: '',
      NewExternalPort: externalPort,
      NewProtocol: 'UDP',
      NewInternalPort: internalPort,
      NewInternalClient: this.#ownHost,
      NewEnabled: 1,
      NewPortMappingDescription: DESCRIPTION,
      NewLeaseDuration: lease,
    };
  }

  async #act(action: string, args: Arguments, signal: AbortSignal): Promise<Answer> {
    const { type } = this.#service;
    const headers = { 'Content-Type': 'text/xml; charset="utf-8"', SOAPAction: `"${type}#${action}"` };
    const request = { url: this.#control, body: soapRequest(type, action, args), headers };
    const { status, text } = await askRouter(this.#deps.clock, request, signal);
    return status === 200 ? { text } : { fault: faultIn(text) ?? status };
  }
}

function refused(reason: string): SvcError {
  return new SvcError('connect_failed', { message: `The router refuses a port by UPnP: ${reason}.` });
}
