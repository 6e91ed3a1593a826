/** Restarts the daemon, if it runs as a system service and the browser is on the same machine. */
import { t } from '../../lib/i18n.ts';
import { here } from '../../lib/place.ts';
import { perform, useQuery } from '../../lib/query.ts';
import { confirm } from '../../parts/overlay.tsx';

export function Restart() {
  const { value } = useQuery('debugHost', {});
  if (here().node !== null || value === undefined) return null;
  if (value['service'] !== true) return <small class="soft">{t('restart.byhand')}</small>;
  return (
    <button
      type="button"
      onClick={() =>
        confirm({
          title: t('restart.do'),
          text: t('restart.what'),
          verb: t('restart.do'),
          run: () => perform('nodeRestart', {}),
        })
      }
    >
      {t('restart.do')}
    </button>
  );
}
