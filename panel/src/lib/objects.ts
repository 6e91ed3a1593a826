/** Files of agents: upload with progress, and download. */

import { request } from './api.ts';
import { Failure, failureOf } from './failure.ts';
import { here } from './place.ts';
import { saveFile } from './save.ts';
import { tokenHeaders } from './session.ts';

/**
 * Downloads an object and saves it as a file. It is never rendered.
 *
 * @throws Failure
 */
export async function saveObject(holder: string, id: string, name: string): Promise<void> {
  const path = `${here().base}/aid/${encodeURIComponent(holder)}/cas/${encodeURIComponent(id)}`;
  const response = await request(path, { headers: { accept: 'application/octet-stream' } });
  saveFile(name, await response.blob());
}

/**
 * Uploads a file as an object of an agent. `fetch` reports no progress, so this uses XMLHttpRequest.
 *
 * @param progress called with the uploaded part, 0 to 1
 * @returns the id of the object
 * @throws Failure; `cancelled` after the signal
 */
export function upload(
  aid: string,
  file: File,
  progress: (part: number) => void,
  signal: AbortSignal,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const sending = new XMLHttpRequest();
    sending.open('POST', `${here().base}/agents/${encodeURIComponent(aid)}/cas?name=${encodeURIComponent(file.name)}`);
    sending.setRequestHeader('content-type', 'application/octet-stream');
    for (const [name, value] of Object.entries(tokenHeaders())) sending.setRequestHeader(name, value);
    sending.upload.addEventListener('progress', ({ loaded, total }) => progress(total === 0 ? 1 : loaded / total));
    sending.addEventListener('load', () => {
      const answer = parsed(sending.responseText);
      const id = typeof answer === 'object' && answer !== null && 'object_id' in answer ? answer.object_id : null;
      if (sending.status <= 299 && typeof id === 'string') resolve(id);
      else reject(failureOf(sending.status, answer));
    });
    sending.addEventListener('error', () => reject(new Failure('daemon_unreachable', 0, '')));
    sending.addEventListener('abort', () => reject(new Failure('cancelled', 0, '')));
    signal.addEventListener('abort', () => sending.abort(), { once: true });
    sending.send(file);
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
