// Starts a program from dist/. A package contains dist/, and a checkout builds it if the sources are newer. This file
// is CommonJS without syntax newer than import(), so that an old Node prints a clear message instead of a syntax error.
var fs = require('fs');
var path = require('path');
var url = require('url');

var root = path.join(__dirname, '..');
/** The oldest supported version: major and minor. */
var needed = require('../package.json').engines.node.replace('>=', '');

function isOld(version) {
  var wanted = needed.split('.').map(Number);
  var given = version.split('.').map(Number);
  return given[0] < wanted[0] || (given[0] === wanted[0] && given[1] < wanted[1]);
}

/** The Node that "npm ci" installs in a checkout. Null in a package. */
function ownNode() {
  var name = process.platform === 'win32' ? 'node.exe' : 'node';
  var file = path.join(root, 'node_modules', 'node', 'bin', name);
  return fs.existsSync(path.join(root, 'src')) && fs.existsSync(file) ? fs.realpathSync(file) : null;
}

/**
 * Runs this program with another Node, and ends like it. An old Node cannot replace itself, so it stays as the parent:
 * it passes signals on. A terminal sends an interrupt to both.
 */
function runWith(node) {
  var tty = require('tty');
  var isOnTerminal = tty.isatty(0) || tty.isatty(1) || tty.isatty(2);
  var child;
  // Installed before the child exists. Otherwise a signal in between would end this process and leave the child running.
  ['SIGTERM', 'SIGHUP', 'SIGINT', 'SIGQUIT'].forEach(function (signal) {
    process.on(signal, function () {
      if (!isOnTerminal || signal === 'SIGTERM' || signal === 'SIGHUP') child.kill(signal);
    });
  });
  child = require('child_process').spawn(node, process.execArgv.concat(process.argv.slice(1)), { stdio: 'inherit' });
  child.on('error', function (error) {
    process.stderr.write('svcd: cannot start ' + node + ': ' + error.message + '\n');
    process.exit(1);
  });
  child.on('exit', function (code, signal) {
    if (signal === null) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

/** Node 24 warns at every start that its SQLite is experimental. svcd's users did not choose it. */
function silenceSqliteWarning() {
  var emit = process.emitWarning;
  process.emitWarning = function (warning, type) {
    if (type !== 'ExperimentalWarning' || String(warning).indexOf('SQLite') === -1) emit.apply(process, arguments);
  };
}

/** Null for a user without a home directory, as containers have them. */
function cacheBelowHome() {
  try {
    return path.join(require('os').homedir(), '.cache');
  } catch (error) {
    if (error.syscall !== 'uv_os_homedir') throw error;
    return null;
  }
}

/**
 * Caches compiled code between starts: beside the program, or in the user's cache directory if that is not writable. If
 * neither is writable, each start compiles.
 */
function enableCompileCache() {
  var nodeModule = require('module');
  var kept = nodeModule.enableCompileCache(path.join(root, 'dist', '.compiled'));
  if (kept.status !== nodeModule.constants.compileCacheStatus.FAILED) return;
  var home = process.env.XDG_CACHE_HOME || cacheBelowHome();
  if (home === null) return;
  // Other users must not write code that this user runs, whatever the user's umask is.
  var umask = process.umask(63);
  nodeModule.enableCompileCache(path.join(home, 'svcd'));
  process.umask(umask);
}

/** SIGUSR1 would open Node's debugger on a local port, for every user of this machine. */
function disableDebuggerSignal() {
  process.on('SIGUSR1', function () {});
}

/** The last change of a file or of anything in a folder, milliseconds since 1970. 0 if it does not exist. */
function changedAt(name) {
  var stat = fs.statSync(name, { throwIfNoEntry: false });
  if (stat === undefined) return 0;
  if (!stat.isDirectory()) return stat.mtimeMs;
  return fs.readdirSync(name).reduce(function (latest, entry) {
    return Math.max(latest, changedAt(path.join(name, entry)));
  }, stat.mtimeMs);
}

/** True if a checkout has changed since dist/ was built. */
function isStale() {
  var built = changedAt(path.join(root, 'dist', 'built'));
  return [
    'src',
    'panel',
    'package-lock.json',
    path.join('tools', 'build.ts'),
    path.join('tools', 'build-panel.ts'),
    path.join('tools', 'bundle'),
  ].some(function (name) {
    return changedAt(path.join(root, name)) > built;
  });
}

/**
 * Builds dist/ of a checkout. Returns false on failure. Prints to standard error, because standard output may carry a
 * protocol.
 */
function build() {
  var started = Date.now();
  var isFirst = !fs.existsSync(path.join(root, 'dist', 'built'));
  process.stderr.write('svcd: ' + (isFirst ? 'first start' : 'the sources have changed') + ', building …');
  var done = require('child_process').spawnSync(
    process.execPath,
    [path.join(root, 'tools', 'build.ts'), '--checkout'],
    { cwd: root, encoding: 'utf8' },
  );
  if (done.status === 0) process.stderr.write(' done in ' + ((Date.now() - started) / 1000).toFixed(1) + ' s\n');
  else process.stderr.write(' failed. Running the sources directly, which starts slower.\n' + done.stderr);
  return done.status === 0;
}

/**
 * Starts a program.
 * @param source the program below src/, for a checkout that cannot build
 * @param compiled the program below dist/
 */
module.exports = function launch(source, compiled) {
  if (isOld(process.versions.node)) {
    var node = ownNode();
    disableDebuggerSignal();
    if (node !== null && node !== fs.realpathSync(process.execPath)) return runWith(node);
    process.stderr.write(
      'svcd needs Node ' +
        needed +
        ' or newer. This is Node ' +
        process.versions.node +
        '.\n' +
        'Install a current Node, or run bin/svc and bin/svcd in a checkout, for which "npm ci" installs one.\n',
    );
    process.exit(1);
  }
  disableDebuggerSignal();
  silenceSqliteWarning();
  enableCompileCache();
  var isCheckout = fs.existsSync(path.join(root, 'src'));
  var runs =
    isCheckout && isStale() && !build() ? path.join('src', source + '.ts') : path.join('dist', compiled + '.js');
  return import(url.pathToFileURL(path.join(root, runs)).href);
};
