/** Public addresses of the agents of this node: callers without svcd reach them through entries. */
import { GuessLimits, householdPrefix } from '../../capabilities/access/guess-limits.ts';
import { AcmeServer, newAccountKey } from '../../capabilities/exposures/acme.ts';
import { Certificates } from '../../capabilities/exposures/certificates.ts';
import { Exposures } from '../../capabilities/exposures/exposures.ts';
import { readCertificate } from '../../foundation/certificate.ts';
import { SvcError } from '../../foundation/errors.ts';
import { CertificateStore } from '../../foundation/store/certificates.ts';
import { ExposureStore } from '../../foundation/store/exposures.ts';
import { PublicServer } from '../../surfaces/public-address/public-server.ts';
import type { Foundation } from '../foundation.ts';
import type { Network } from '../network.ts';
import type { Agents } from './agents.ts';
import type { buildCards } from './cards.ts';
import type { buildPublicNames } from './public-names.ts';
import type { buildCalls } from './services.ts';

/** The key of the account at the ACME server, sealed. */
const ACCOUNT_KEY = 'acme_account_key';

export function buildPublicAddresses(
  { life, parts, clock, log, store, secrets, meta, config, rollback }: Foundation,
  { records, lookupHost }: Network,
  { boundService, serviceSockets, onDeleted }: Agents,
  { publicNames }: ReturnType<typeof buildPublicNames>,
  { callerKey }: Pick<ReturnType<typeof buildCalls>, 'callerKey'>,
  { cardAdmission }: Pick<ReturnType<typeof buildCards>, 'cardAdmission'>,
) {
  const exposures = new Exposures({
    store: new ExposureStore(store),
    clock,
    guesses: new GuessLimits(clock),
    household: householdPrefix,
    isTrusted: () => !rollback.isRolledBack,
  });
  onDeleted((aid) => exposures.forget(aid));
  const certificates = new Certificates({
    ...parts,
    store: new CertificateStore(store, secrets),
    network: records,
    files: async () => {
      const { public_cert: cert, public_key: key } = config;
      return cert === '' ? null : await readCertificate({ cert, key }, { cert: 'public_cert', key: 'public_key' });
    },
    order: async (host, prove, signal) => {
      // A failed verification counts against the limits of the server.
      const addresses = await lookupHost(host).catch(() => []);
      if (addresses.length === 0) throw new SvcError('name_not_resolved');
      const server = new AcmeServer({ directory: config.acme_directory, accountKey: accountKey(), clock, fetch });
      return await server.order(host, prove, signal);
    },
    hosts: () =>
      exposures
        .list()
        .map(({ host }) => host)
        .filter((host) => exposures.served(host) !== null),
  });
  const accountKey = (): string => {
    const kept = meta.get(ACCOUNT_KEY);
    const known = typeof kept === 'string' ? secrets.open(ACCOUNT_KEY, Buffer.from(kept, 'base64')) : null;
    if (known !== null) return known;
    const key = newAccountKey();
    meta.set(ACCOUNT_KEY, Buffer.from(secrets.seal(ACCOUNT_KEY, key)).toString('base64'));
    return key;
  };
  life.defer(exposures.onChange((host) => certificates.exposed(host)));
  const publicServer = new PublicServer({
    clock,
    log: log.child('public'),
    exposures,
    certificates,
    serviceOf: (aid) => {
      const service = boundService(aid);
      return service === null ? null : { ...service, scheme: service.scheme === 'https' ? 'https' : 'http' };
    },
    rawServiceOf: (aid) => boundService(aid)?.tunnels ?? null,
    connect: (address) => serviceSockets.connect(address),
    callerKey,
    publicCard: (card, aid, to, signal) => cardAdmission.toLocalCard(card, aid, to, signal),
    watch: (socket) => serviceSockets.watch(socket),
  });
  publicNames.onConnection(publicServer.accept);
  life.add('answering', publicServer);
  life.add('acting', certificates);
  return { exposures, certificates, publicServer };
}
