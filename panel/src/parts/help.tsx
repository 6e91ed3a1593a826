/** The list of keyboard shortcuts. */
import { t } from '../lib/i18n.ts';
import { Dialog } from './overlay.tsx';
import { ShortcutSwitch } from './shortcut-switch.tsx';

export function Help({ close }: { readonly close: () => void }) {
  const keys: readonly [string, string][] = [
    ['Ctrl K', t('find')],
    ['g h / a / p / d / m / f / n', t('areas')],
    ['/', t('filter')],
    ['n', t('agent.new')],
    ['j / k', t('keys.rows')],
    ['Enter', t('open')],
    ['Esc', t('keys.up')],
    ['?', t('keys')],
  ];
  return (
    <Dialog title={t('keys')} close={close}>
      <dl class="pairs">
        {keys.map(([key, what]) => (
          <>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </>
        ))}
      </dl>
      <p>
        <ShortcutSwitch />
      </p>
      <div class="acts">
        <button type="button" onClick={close}>
          {t('close')}
        </button>
      </div>
    </Dialog>
  );
}
