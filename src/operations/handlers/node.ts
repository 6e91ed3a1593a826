/** Handlers of the operations on the node. */
import type { ConfigService } from '../../foundation/config/config-service.ts';
import { configSchema } from '../../foundation/config/schema.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { nodeOperations } from '../node.ts';
import type { Handlers, OutputOf } from '../operation.ts';

/** Read-only facts for `/debug/*`, without secrets. */
export type Report = () => Readonly<Record<string, unknown>> | Promise<Readonly<Record<string, unknown>>>;

export interface NodeHandlerDependencies {
  readonly status: () => OutputOf<typeof nodeOperations.status> | Promise<OutputOf<typeof nodeOperations.status>>;
  readonly config: ConfigService;
  readonly filesRoot: {
    /**
     * Changes the folder for objects now, and in config.toml.
     * @returns the folder in use, and the objects that stay in the previous one
     * @throws SvcError `config_invalid`, `not_writable`; nothing has changed then
     */
    set(path: string): { readonly path: string; readonly left: number; readonly overridden: boolean };
  };
  readonly rollback: {
    readonly isRolledBack: boolean;
    /** @throws SvcError `not_writable` */
    confirm(): void;
  };
  readonly debug: Readonly<Record<'identity' | 'routing' | 'store' | 'stats' | 'host', Report>>;
}

/** An invalid key, reported like other invalid request bodies. */
function asRequestError(error: unknown): unknown {
  if (!(error instanceof SvcError) || error.code !== 'config_invalid' || error.details?.['source'] !== 'patch')
    return error;
  const { key } = error.details;
  return new SvcError('invalid_request', {
    message: error.message,
    details: { in: 'body', path: `/${String(key)}`, key },
    cause: error,
  });
}

export function nodeHandlers(dependencies: NodeHandlerDependencies): Handlers<typeof nodeOperations> {
  const { status, config, debug, filesRoot, rollback } = dependencies;
  return {
    health: () => ({ status: 'ok' }),
    status: () => status(),
    configGet: () => ({
      ...config.redacted(),
      overridden: { ...config.overrides },
      restart_required: [...config.restartRequired],
    }),
    configPatch: (changes) => {
      try {
        return config.patch({ ...changes });
      } catch (error) {
        throw asRequestError(error);
      }
    },
    configSchema: () => configSchema(),
    filesRootSet: ({ path }, context) => {
      context.requireToken();
      try {
        const { path: now, left, overridden } = filesRoot.set(path);
        return { ok: true, files_root: now, objects_left: left, overridden };
      } catch (error) {
        throw asRequestError(error);
      }
    },
    accessConfirm: (_input, context) => {
      context.requireToken();
      const { isRolledBack } = rollback;
      rollback.confirm();
      return { ok: true, was_closed: isRolledBack };
    },
    debugIdentity: () => debug.identity(),
    debugRouting: () => debug.routing(),
    debugStore: () => debug.store(),
    debugStats: () => debug.stats(),
    debugHost: () => debug.host(),
  };
}
