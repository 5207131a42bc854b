// Child processes and folders that a browser needs, and that must not outlive it: each child leads a process group of its
// own, which is killed as a whole on `close` and when this process ends, however it ends (short of SIGKILL).
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const cleanups = new Set<() => void>();

function runCleanups(): void {
  for (const cleanup of cleanups) cleanup();
}

process.on('exit', runCleanups);

/** A new folder. `remove` deletes it. */
export function createFolder(name: string): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), `${name}-`));
  const remove = () => {
    cleanups.delete(remove);
    rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  };
  cleanups.add(remove);
  return { path, remove };
}

export interface Child {
  readonly process: ChildProcess;
  /** Resolves with the first match in what the child prints, rejects if it ends first. */
  printed(pattern: RegExp): Promise<RegExpMatchArray>;
  kill(): Promise<void>;
}

export function start(command: string, args: string[], env: NodeJS.ProcessEnv = process.env): Child {
  const child = spawn(command, args, { env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  let output = '';
  const listeners = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output = (output + chunk).slice(-20_000);
      for (const listener of listeners) listener();
    });
  }
  child.once('error', (error) => {
    output += String(error);
  });

  const killGroup = () => {
    try {
      if (child.pid) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // The group has ended.
    }
  };
  cleanups.add(killGroup);

  return {
    process: child,
    printed: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const match = output.match(pattern);
          if (match) settle(() => resolve(match));
        };
        const settle = (how: () => void) => {
          listeners.delete(look);
          how();
        };
        listeners.add(look);
        ended.then(() => settle(() => reject(new Error(`${command} ended: ${output}`))));
        look();
      }),
    kill: async () => {
      killGroup();
      cleanups.delete(killGroup);
      await ended;
    },
  };
}
