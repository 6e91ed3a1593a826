/** What routers say and are told in UPnP (WANIPConnection:1 and :2, WANPPPConnection:1). Pure. */
import { MAX_PORT } from '../../../foundation/domain/tunnels.ts';
import { canonicalIp } from '../../../foundation/ip.ts';
import { elementsOf, elementText, escapeXml } from './xml.ts';

const SERVICE = 'urn:schemas-upnp-org:service:';
/** The best first: the first one can choose a port itself. */
const SERVICE_TYPES = ['WANIPConnection:2', 'WANIPConnection:1', 'WANPPPConnection:1'].map((type) => SERVICE + type);
const CHOOSING_TYPE = SERVICE_TYPES[0];
/** Services of a description that are looked at. */
const MAX_DESCRIBED_SERVICES = 64;

/** Errors that are answered with another request (WANIPConnection:2, 2.5.16). */
export const UPNP_ERRORS = { conflict: 718, onlyPermanent: 725 } as const;

export interface WanService {
  readonly type: string;
  /** Where it takes requests, as the router says it: relative, or a URL. */
  readonly control: string;
  /** True where it gives another port if the one that was asked for is taken. */
  readonly chooses: boolean;
}

/** The service of a router's description that maps ports; null where it has none. */
export function wanServiceIn(description: string): WanService | null {
  const services = elementsOf(description, 'service', MAX_DESCRIBED_SERVICES).map((xml) => ({
    type: elementText(xml, 'serviceType'),
    control: elementText(xml, 'controlURL'),
  }));
  for (const type of SERVICE_TYPES) {
    const control = services.find((service) => service.type === type)?.control ?? null;
    if (control !== null) return { type, control, chooses: type === CHOOSING_TYPE };
  }
  return null;
}

/** A request of SOAP; the order of the arguments counts for some routers. */
export function soapRequest(type: string, action: string, args: Readonly<Record<string, string | number>>): string {
  const members = Object.entries(args).map(([name, value]) => `<${name}>${escapeXml(String(value))}</${name}>`);
  return [
    '<?xml version="1.0"?>',
    '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" s:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/">',
    `<s:Body><u:${action} xmlns:u="${type}">${members.join('')}</u:${action}></s:Body></s:Envelope>`,
  ].join('\r\n');
}

/** The code of an error that a router answers; null where it answers none. */
export function faultIn(answer: string): number | null {
  const text = elementText(answer, 'errorCode');
  return text !== null && /^\d{1,5}$/.test(text) ? Number(text) : null;
}

/** The IP address in the answer to GetExternalIPAddress; null without one. */
export function externalHostIn(answer: string): string | null {
  return canonicalIp(elementText(answer, 'NewExternalIPAddress') ?? '');
}

/** The port in the answer to AddAnyPortMapping; null without one. */
export function reservedPortIn(answer: string): number | null {
  const text = elementText(answer, 'NewReservedPort') ?? '';
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  return port > 0 && port <= MAX_PORT ? port : null;
}
