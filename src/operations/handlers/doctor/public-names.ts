/** Checks of public names: DNS, and the way from this machine over the entry back to it. */
import type { ProbedName } from '../../../capabilities/public-names/probe-name.ts';
import { type Finding, findingsOf } from '../../../foundation/domain/findings.ts';

export interface PublicNamesExamination {
  /** The public names of the agents of this node. */
  readonly names: () => readonly string[];
  /** The domains of this node as an entry. */
  readonly domains: () => readonly string[];
  readonly probe: (name: string) => Promise<ProbedName>;
  /** The addresses of a host name. @throws if it has none */
  readonly resolve: (host: string) => Promise<readonly string[]>;
}

/** A label below a domain, which no agent holds. */
const ANY_LABEL = 'svcd-doctor';

const reachability = findingsOf('reachability');

function nameFinding(name: string, probed: ProbedName): Finding {
  const domain = name.slice(name.indexOf('.') + 1);
  if (probed === 'answers') return reachability.pass(`https://${name} reaches this node through its entry`);
  if (probed === 'unresolved')
    return reachability.fail(`${name} has no address`, `Add the DNS record *.${domain} with the address of the entry.`);
  if (probed === 'other')
    return reachability.warn(
      `a server without a certificate for ${name} answers there`,
      'Check that the DNS record names the entry. If the address is new, wait for its certificate: "svc expose list".',
    );
  return reachability.fail(
    `https://${name} does not answer`,
    'Open TCP port 443 of the entry in its firewall. "svc entry" there shows whether svcd has the port.',
  );
}

async function examineDomain(domain: string, resolve: PublicNamesExamination['resolve']): Promise<Finding> {
  const addresses = await resolve(`${ANY_LABEL}.${domain}`).catch(() => []);
  return addresses.length > 0
    ? reachability.pass(`names below ${domain} lead to ${addresses.join(', ')}`)
    : reachability.fail(
        `names below ${domain} have no address, so this entry receives no connections`,
        `Add the DNS record *.${domain} with the public address of this node.`,
      );
}

export async function examinePublicNames({
  names,
  domains,
  probe,
  resolve,
}: PublicNamesExamination): Promise<Finding[]> {
  return await Promise.all([
    ...domains().map((domain) => examineDomain(domain, resolve)),
    ...names().map(async (name) => nameFinding(name, await probe(name))),
  ]);
}
