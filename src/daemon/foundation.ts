/** Opens the foundation: data directory, configuration, keys, store and log. */
import { WorkUnderWay } from '../foundation/concurrency.ts';
import { ConfigService } from '../foundation/config/config-service.ts';
import { AUTO_PROXY } from '../foundation/config/schema.ts';
import { DataDir } from '../foundation/data-dir/data-dir.ts';
import { DATABASE_FILE, KEYS_DIRECTORY, STATE_NUMBER_FILE } from '../foundation/data-dir/paths.ts';
import { doubtfulPassphrase, rejectQuoted } from '../foundation/environment.ts';
import { SvcError } from '../foundation/errors.ts';
import { nativeAid } from '../foundation/identity/aid.ts';
import { selfDelegation } from '../foundation/identity/delegation.ts';
import { DelegationVerifier } from '../foundation/identity/delegation-verifier.ts';
import { KeyPair } from '../foundation/identity/keys.ts';
import { parseJoinTarget } from '../foundation/invitation.ts';
import { KeyStore, NODE_KEY } from '../foundation/keys/key-store.ts';
import { PASSPHRASE_COST } from '../foundation/keys/passphrase.ts';
import { StoredSecrets } from '../foundation/keys/stored-secrets.ts';
import type { Log } from '../foundation/log.ts';
import { Logger } from '../foundation/logger.ts';
import { RecentLog } from '../foundation/recent-log.ts';
import { RecordVerifier } from '../foundation/records/verifier.ts';
import { MetaStore } from '../foundation/store/meta.ts';
import { RollbackGuard } from '../foundation/store/rollback-guard.ts';
import { MIGRATIONS } from '../foundation/store/schema.ts';
import { SeenDelegations } from '../foundation/store/seen-delegations.ts';
import { Store } from '../foundation/store/store.ts';
import { VERSION } from '../foundation/version.ts';
import type { LocalIdentity } from '../network/links/types.ts';
import { PROXY_VARIABLES } from '../network/transport/tls/proxy.ts';
import type { DaemonArguments } from './args.ts';
import { checkFilesRoot } from './files-root.ts';
import type { Life } from './life.ts';
import { type Machine, thisMachine } from './machine.ts';
import { MANAGED_VARIABLE } from './service/managed.ts';

// The node key: created on the first start and stored in the key store.

/** The node as an identity. Its key is both master key and operational key. */
export interface NodeIdentity extends LocalIdentity {
  readonly key: KeyPair;
}

/** @throws SvcError `key_locked`, `key_damaged`, `not_writable` */
export function loadNodeIdentity(keys: KeyStore): NodeIdentity {
  const kept = keys.get(NODE_KEY);
  const key = kept ?? KeyPair.generate();
  if (kept === null) keys.put(NODE_KEY, key);
  const { publicKey } = key;
  const sign = (message: Uint8Array): Uint8Array => key.sign(message);
  return { key, aid: nativeAid(publicKey), delegation: selfDelegation(key), publicKey, sign };
}

/** @throws SvcError as `KeyStore.open` */
async function openKeys(directory: string, text: string | undefined, log: Log): Promise<KeyStore> {
  const dependencies = { log: log.child('keys') };
  if (text === undefined) return await KeyStore.open({ directory }, dependencies);
  const doubt = doubtfulPassphrase(PASSPHRASE, text);
  if (doubt !== null) log.warn({}, `${doubt}. If this is a mistake, correct it before other keys are sealed with it`);
  try {
    return await KeyStore.open({ directory, passphrase: { text, cost: PASSPHRASE_COST } }, dependencies);
  } catch (error) {
    if (doubt === null || !(error instanceof SvcError) || error.code !== 'key_locked') throw error;
    throw new SvcError('key_locked', { message: `${error.message} ${doubt}: try it without.`, cause: error });
  }
}

/** Variables that start with `SVCD_` but are not configuration keys. */
const PASSPHRASE = 'SVCD_KEY_PASSPHRASE';
const OTHER_VARIABLES = ['SVCD_DATA_DIR', PASSPHRASE, MANAGED_VARIABLE];

export type Foundation = Awaited<ReturnType<typeof openFoundation>>;

/** @throws SvcError `already_running`, `config_invalid`, `key_locked`, `store_corrupt`, `not_writable` */
export async function openFoundation(
  args: DaemonArguments,
  environment: NodeJS.ProcessEnv,
  life: Life,
  { clock }: Pick<Machine, 'clock'> = thisMachine(),
) {
  const dataDir = DataDir.open({ path: args.dataDir, version: VERSION }, { clock });
  life.defer(() => dataDir.close());
  const configuration = new ConfigService({
    file: args.configFile,
    environment,
    flags: args.flags,
    otherVariables: OTHER_VARIABLES,
  });
  const config = configuration.current;
  const recentLog = new RecentLog();
  const log = new Logger(
    { level: config.log_level, format: config.log_format, isForUser: args.onTerminal === true },
    { clock, recent: recentLog },
  );
  life.defer(
    configuration.onChange((changed, current) => {
      if (changed.has('log_level')) log.setLevel(current.log_level);
      if (changed.has('log_format')) log.setFormat(current.log_format);
    }),
  );
  for (const warning of configuration.warnings) log.warn({}, warning);
  if (config.proxy === AUTO_PROXY) rejectQuoted(environment, PROXY_VARIABLES);
  const keyDirectory = config.key_dir === '' ? dataDir.file(KEYS_DIRECTORY) : config.key_dir;
  checkFilesRoot(config.files_root, { dataDir: dataDir.path, keys: keyDirectory });
  const keys = await openKeys(keyDirectory, environment[PASSPHRASE], log);
  const node = loadNodeIdentity(keys);
  const store = Store.open(dataDir.file(DATABASE_FILE), MIGRATIONS);
  life.defer(() => store.close());
  // Runs after all components have stopped: requests under way still use the store.
  const requests = new WorkUnderWay();
  life.defer(() => requests.idle());
  const secrets = new StoredSecrets(node.key.seed);
  store.reserveJournal();
  store.onDamage((row) =>
    log.error(
      { row },
      'a stored entry is damaged and was skipped: the disk may be failing. Restore a backup to recover it',
    ),
  );
  const seen = new SeenDelegations({ store, clock, log });
  await life.start(seen);
  const delegations = new DelegationVerifier();
  const verifier = new RecordVerifier({}, { delegations });
  const meta = new MetaStore(store);
  const rollback = new RollbackGuard(dataDir.file(STATE_NUMBER_FILE), { store, meta, clock, log });
  await life.start(rollback);
  const stored = { store, secrets, meta, seen, rollback };
  return {
    life,
    clock,
    parts: { clock, log, random: Math.random },
    dataDir,
    keyDirectory,
    configuration,
    config,
    log,
    recentLog,
    keys,
    node,
    delegations,
    verifier,
    requests,
    /** The nodes of `--join`. */
    join: args.join === undefined ? null : parseJoinTarget(args.join),
    ...stored,
  };
}
