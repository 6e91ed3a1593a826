/** `svc panel`: the web panel in a browser, and who is logged in to it. */
import { openInBrowser } from '../../../foundation/open-browser.ts';
import { writePanelFile } from '../../../foundation/panel-file.ts';
import { relativeTime } from '../../../foundation/plain-words.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { formatTable } from '../text.ts';

const ONCE = 'It works once, within a minute, in a browser on this machine.';

/** Whether a browser was started with the address. Where the file cannot be written, the address is all there is. */
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
    'open the web panel of this node in a browser, and print its address',
    ['svc panel', 'svc panel url', 'svc panel sessions'],
    {
      run: async (context) => {
        const { url, expires_at } = await context.local.panelLogin();
        return { url, expires_at, opened: await opened(context, url) };
      },
      text: (answer) => answer.url,
      quiet: (answer) => answer.url,
      remark: (answer) =>
        answer.opened
          ? `A browser opens it. Where none does, open this address. ${ONCE}`
          : `Open this address. ${ONCE}`,
    },
  );
  panel.run('url', 'print an address that opens the panel once', {
    run: async ({ local }) => {
      const { url, expires_at } = await local.panelLogin();
      return { url, expires_at };
    },
    text: ({ url }) => url,
    quiet: ({ url }) => url,
    remark: () => ONCE,
  });
  panel.call('sessions', 'show who is logged in to the panel', {
    operation: 'panelSessions',
    aids: 'whole',
    text: ({ sessions }) =>
      formatTable(
        ['ID', 'SINCE', 'LAST SEEN', 'ENDS'],
        sessions.map(({ id, created_at, last_seen_at, expires_at }) => [
          id,
          ...[created_at, last_seen_at, expires_at].map((at) => relativeTime(at, Date.now())),
        ]),
        'Nobody is logged in. Where no token is needed, nobody has to.',
      ),
    quiet: ({ sessions }) => sessions.map(({ id }) => id).join('\n'),
  });
  panel.call('end <id>', 'end a session of the panel', {
    examples: ['svc panel end 3f9a52c07b1d8e64'],
    operation: 'panelSessionEnd',
    text: () => 'The session has ended.',
    quiet: (_, { id }) => id,
  });
}
