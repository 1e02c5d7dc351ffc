//! Commands on the user's own machine: the emulator, labs, controls. A build without the feature
//! `local`, which is sent to other machines, has none of it.

use tcplab_lab::Role;

use crate::watch::{self, Watched};
use crate::{emu, loader, node, serve};

/// Does what `command` says with the words after it; returns the exit code. `None`: unknown command.
pub fn run<'a>(command: &str, mut words: impl Iterator<Item = &'a str>) -> Result<Option<u8>, String> {
    Ok(Some(match command {
        "emu" => {
            crate::nothing_more(command, words)?;
            emu::main()
        }
        "controls" => {
            crate::nothing_more(command, words)?;
            loader::main()
        }
        "probe" => {
            let sysctls: Vec<String> = words.map(str::to_owned).collect();
            println!("{}", tcplab_lab::probe(&sysctls));
            0
        }
        "lab" => lab(&options(words)?),
        "enter" => match (words.next(), words.next()) {
            (Some(lab), Some(process)) => tcplab_lab::enter(&tcplab_lab::Entry {
                lab: process_number(lab)?,
                process: process_number(process)?,
                command: words.map(str::to_owned).collect(),
            }),
            _ => return Err("enter needs the processes of a lab and of a node, and a program".to_owned()),
        },
        "serve" => {
            crate::nothing_more(command, words)?;
            serve::main()
        }
        "watch" => watch::main(&watched(words)?),
        _ => return Ok(None),
    }))
}

fn lab(options: &tcplab_lab::Options) -> u8 {
    tcplab_lab::serve(options, &|role| match role {
        Role::Node => node::main(false, None),
        Role::Emulator => emu::main(),
        Role::Controls => loader::main(),
        // The lab itself does that.
        Role::Hold => 0,
    })
}

fn options<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<tcplab_lab::Options, String> {
    let mut options = tcplab_lab::Options::default();
    while let Some(word) = words.next() {
        match (word, words.next()) {
            ("--parent", Some(pid)) => options.parent = Some(process_number(pid)?),
            ("--name", Some(name)) => options.name = Some(name.to_owned()),
            _ => return Err(format!("lab knows no {word:?}")),
        }
    }
    Ok(options)
}

fn watched<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<Watched, String> {
    let milliseconds = words.next().and_then(|word| word.parse().ok()).filter(|&number| number > 0);
    let milliseconds = milliseconds.ok_or("watch needs a number of milliseconds")?;
    let node = |word: &str| {
        let (name, process) = word.split_once('=').ok_or("watch needs nodes with a process of each")?;
        Ok::<_, String>((name.to_owned(), process_number(process)?))
    };
    Ok(Watched { milliseconds, nodes: words.map(node).collect::<Result<_, _>>()? })
}

fn process_number(word: &str) -> Result<i32, String> {
    word.parse().map_err(|_| format!("{word:?} is not the number of a process"))
}
