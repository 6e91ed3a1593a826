/** The only button of a dialog. */
import { t } from '../lib/i18n.ts';

export function CloseButton({ close }: { readonly close: () => void }) {
  return (
    <div class="acts">
      <button type="button" class="main" onClick={close}>
        {t('close')}
      </button>
    </div>
  );
}
