/** `svc panel`: opens the web panel in a browser, and shows its sessions. */
import { openInBrowser, writePanelFile } from '../../../foundation/panel-access.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';

const ONCE = 'The URL works once, within a minute, in a browser on this machine.';

/** True if a browser was started. If the page cannot be written, only the URL is printed. */
async function opened({ local, io }: CliContext, url: string): Promise<boolean> {
  try {
    const { data_dir } = await local.status();
    return await openInBrowser(writePanelFile(data_dir, url), io.env);
  } catch {
    return false;
  }
}

export function panelCommands(svc: CommandGroup): void {
  const panel = svc.group(
    'panel',
    'open the web panel of this node in a browser and print its URL',
    ['svc panel', 'svc panel url', 'svc panel sessions'],
    {
      run: async (context) => {
        const { url, expires_at } = await context.local.panelLogin();
        return { url, expires_at, opened: await opened(context, url) };
      },
      text: (answer) => answer.url,
      quiet: (answer) => answer.url,
      remark: (answer) =>
        answer.opened ? `A browser opens it. If none does, open this URL. ${ONCE}` : `Open this URL. ${ONCE}`,
    },
  );
  panel.run('url', 'print a URL that opens the panel once', {
    run: async ({ local }) => {
      const { url, expires_at } = await local.panelLogin();
      return { url, expires_at };
    },
    text: ({ url }) => url,
    quiet: ({ url }) => url,
    remark: () => ONCE,
  });
  panel.call('panelSessions', 'sessions', 'list the browsers that are logged in to the panel', {
    aids: 'whole',
    table: {
      of: 'sessions',
      columns: { ID: 'id', SINCE: 'created_at', 'LAST SEEN': 'last_seen_at', ENDS: 'expires_at' },
      none: 'No sessions. If no token is required, no login is needed.',
    },
  });
  panel.call('panelSessionEnd', 'rm <id>', 'log a browser out of the panel', {
    examples: ['svc panel rm 3f9a52c07b1d8e64'],
    text: 'Ended the session.',
  });
}
