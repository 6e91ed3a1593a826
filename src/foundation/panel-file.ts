/**
 * A file that opens the panel in a browser. The address contains a code, and other users of the machine can see program
 * arguments, so it is not passed as one.
 */
import { join } from 'node:path';
import { writeFileAtomic } from './atomic-file.ts';
import { PANEL_FILE } from './data-dir/names.ts';

function attribute(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
}

/**
 * Writes the file into the data directory, readable by its owner only. The daemon removes it when the code expires.
 * @returns its path
 * @throws SvcError `not_writable`
 */
export function writePanelFile(dataDir: string, url: string): string {
  const file = join(dataDir, PANEL_FILE);
  const to = attribute(url);
  writeFileAtomic(
    file,
    `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url=${to}">
<title>svcd</title>
</head>
<body><a href="${to}">The panel of svcd</a></body>
</html>
`,
  );
  return file;
}
