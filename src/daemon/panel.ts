/** Access to the panel: login codes, and opening it at startup. */
import { rmSync } from 'node:fs';
import { PANEL_CODE_LIFE_MS, PanelLogins } from '../capabilities/panel/panel-logins.ts';
import type { Timer } from '../foundation/clock.ts';
import { PANEL_FILE } from '../foundation/data-dir/paths.ts';
import { detach } from '../foundation/detached.ts';
import type { NodeParts } from '../foundation/node-parts.ts';
import { browserCommand, openInBrowser, writePanelFile } from '../foundation/panel-access.ts';
import type { Foundation } from './foundation.ts';
import { connectable } from './status.ts';

export interface PanelDependencies extends NodeParts {
  readonly dataDir: Pick<Foundation['dataDir'], 'path' | 'file'>;
  readonly config: Pick<Foundation['config'], 'open_browser' | 'require_local_token' | 'api_token'>;
  /** Listen address of the API, `host:port`. */
  readonly apiAddress: () => string;
  /** Opens a URL or a file in a browser; null if there is no desktop. */
  readonly open: ((target: string) => Promise<unknown>) | null;
}

export class Panel {
  readonly logins: PanelLogins;
  readonly #deps: PanelDependencies;
  #removal: Timer | null = null;

  constructor(dependencies: PanelDependencies) {
    this.#deps = dependencies;
    this.logins = new PanelLogins(dependencies);
  }

  /**
   * Creates a login code and the URL that opens the panel with it.
   * @throws SvcError `rate_limited` while too many codes are valid
   */
  login(): { readonly code: string; readonly url: string; readonly expiresAt: number } {
    const { code, expiresAt } = this.logins.openCode();
    this.#removal?.cancel();
    // The file is removed when the code expires, even if the browser never opened it.
    this.#removal = this.#deps.clock.after(PANEL_CODE_LIFE_MS, () => this.removeFile());
    return { code, url: `${this.#url}#login=${code}`, expiresAt };
  }

  /** Opens the panel in a browser if there is a desktop and the configuration allows it. */
  openAtStart(): void {
    const { config, dataDir, open, log } = this.#deps;
    if (!config.open_browser || open === null) return;
    try {
      const asksForToken = config.require_local_token && config.api_token !== '';
      const target = asksForToken ? writePanelFile(dataDir.path, this.login().url) : this.#url;
      detach(open(target));
    } catch (error) {
      log.warn({ err: error }, 'cannot open the panel in a browser');
    }
  }

  removeFile(): void {
    rmSync(this.#deps.dataDir.file(PANEL_FILE), { force: true });
  }

  stop(): void {
    this.#removal?.cancel();
    this.logins.endAll();
    this.removeFile();
  }

  get #url(): string {
    return `http://${connectable(this.#deps.apiAddress())}/`;
  }
}

/** @param apiAddress returns the listen address of the API, `host:port` */
export function buildPanel(f: Foundation, apiAddress: () => string, environment: NodeJS.ProcessEnv): Panel {
  const isDesktop = browserCommand('', process.platform, environment) !== null;
  const open = isDesktop ? (target: string) => openInBrowser(target, environment) : null;
  const panel = new Panel({ ...f, apiAddress, open });
  panel.removeFile();
  f.life.defer(() => panel.stop());
  f.life.defer(
    f.configuration.onChange((changed) => {
      if (changed.has('api_token')) panel.logins.endAll();
    }),
  );
  return panel;
}
